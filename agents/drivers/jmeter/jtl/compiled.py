"""Counts rows of plain cells, as machine code: to import it costs half a second, so do it for large files only."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

SKIPPED, TIME, ELAPSED, BYTES, SENT, ACTIVE, LABEL, CODE, MESSAGE, SUCCESS = range(10)
SUCCEEDED, FAILED, FAILURE, STEP = range(4)
NOT_PLAIN = -1
MAX_DIGITS = 18
TEXT_SLOTS = 1 << 10
MAX_KEYS = 1 << 17
_KEY_SLOTS = MAX_KEYS * 4
_MAX_STEPS = 64
_JUMP = 40_503
_NEWLINE, _QUOTE, _ZERO, _NINE = ord("\n"), ord('"'), ord("0"), ord("9")


@njit(nogil=True, cache=True)
def count_rows(
    data: NDArray[np.uint8],
    delimiter: int,
    roles: NDArray[np.int64],
    max_elapsed_ms: int,
    end_of_time_ms: int,
    spans: NDArray[np.int64],
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """How many rows of `counts` were filled, or NOT_PLAIN. `data` ends with a newline, so no cell goes on behind it.

    `roles` says what each column is. A text is its place in `spans`, a table of the different texts of each role by a
    number made of their bytes: where each begins first and its length, -1 at free places. A row of `counts` is what is
    counted, its numbers and then its figures: SUCCEEDED or FAILED, label, code, elapsed ms: rows, bytes, sent bytes,
    first and last start; STEP, 0, 0, second of the end: rows, failed ones, ms in all, most active threads; FAILURE,
    label, code, message: rows. `ends` gets the number of rows, the first and the last end, and by how much an end was
    before the one above. One long function, because to pass arrays to another one costs more than what that would do;
    np.uintp(...), because numba else looks at every place whether it is below zero, a quarter of all time.
    """
    stops = np.zeros(256, np.bool_)
    stops[delimiter] = stops[_NEWLINE] = stops[_QUOTE] = True
    index = np.zeros(_KEY_SLOTS, np.int32)
    cells = np.zeros(SUCCESS + 1, np.int64)
    last = len(roles) - 1
    at = rows = used = back_ms = end_ms = 0
    while at < len(data):
        for column in range(len(roles)):
            role = roles[column]
            begin = at
            if role == SKIPPED:
                while not stops[data[np.uintp(at)]]:
                    at += 1
            elif role < LABEL:
                value = 0
                while data[np.uintp(at)] >= _ZERO and data[np.uintp(at)] <= _NINE:
                    value = value * 10 + (data[np.uintp(at)] - _ZERO)
                    at += 1
                if at == begin or at - begin > MAX_DIGITS:
                    return NOT_PLAIN
                cells[role] = value
            else:
                mixed = 0
                while not stops[data[np.uintp(at)]]:
                    mixed = mixed * 31 + data[np.uintp(at)]
                    at += 1
                length = at - begin
                place = ((mixed * 0x9E3779B1) >> 16) & (TEXT_SLOTS - 1)
                for _ in range(_MAX_STEPS):
                    if spans[role, place, 1] < 0:
                        spans[role, place, 0] = begin
                        spans[role, place, 1] = length
                        break
                    if spans[role, place, 1] == length:
                        first = spans[role, place, 0]
                        same = True
                        for i in range(length):
                            if data[np.uintp(first + i)] != data[np.uintp(begin + i)]:
                                same = False
                                break
                        if same:
                            break
                    place = (place + 1) & (TEXT_SLOTS - 1)
                else:
                    return NOT_PLAIN
                cells[role] = place
            if data[np.uintp(at)] != (_NEWLINE if column == last else delimiter):
                return NOT_PLAIN
            at += 1
        time_ms, elapsed_ms = cells[TIME], cells[ELAPSED]
        if elapsed_ms > max_elapsed_ms or time_ms >= end_of_time_ms:
            return NOT_PLAIN
        before_ms, end_ms = end_ms, time_ms + elapsed_ms
        if rows == 0:
            ends[1] = end_ms
        elif before_ms - end_ms > back_ms:
            back_ms = before_ms - end_ms
        rows += 1
        failed = int(spans[SUCCESS, cells[SUCCESS], 1] != 4)  # "true" has four letters, and "false" five
        for turn in range(2 + failed):
            what, label, code = STEP, 0, 0
            number = end_ms // 1000
            if turn != 1:
                what = FAILURE if turn else failed
                label, code = cells[LABEL], cells[CODE]
                number = cells[MESSAGE] if turn else elapsed_ms
            mixed = (what << 20 | label << 10 | code) * 0x9E3779B1
            slot = ((mixed >> 16) + number) & (_KEY_SLOTS - 1)
            for _ in range(_MAX_STEPS):
                row = index[slot] - 1
                if row < 0:
                    if used == len(counts):
                        return NOT_PLAIN
                    row = used
                    used += 1
                    index[slot] = used
                    counts[row, 0], counts[row, 1], counts[row, 2], counts[row, 3] = what, label, code, number
                    counts[row, 4] = counts[row, 5] = counts[row, 6] = counts[row, 8] = 0
                    counts[row, 7] = time_ms if turn == 0 else 0
                    break
                if (
                    counts[row, 3] == number
                    and counts[row, 1] == label
                    and counts[row, 2] == code
                    and counts[row, 0] == what
                ):
                    break
                slot = (slot + _JUMP) & (_KEY_SLOTS - 1)
            else:
                return NOT_PLAIN
            counts[row, 4] += 1
            if turn == 0:
                counts[row, 5] += cells[BYTES]
                counts[row, 6] += cells[SENT]
                counts[row, 7] = min(counts[row, 7], time_ms)
                counts[row, 8] = max(counts[row, 8], time_ms)
            elif turn == 1:
                counts[row, 5] += failed
                counts[row, 6] += elapsed_ms
                counts[row, 7] = max(counts[row, 7], cells[ACTIVE])
    ends[0], ends[2], ends[3] = rows, end_ms, back_ms
    return used
