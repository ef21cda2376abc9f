"""What happens to report files on their way: cut, doubled, mixed up, mistyped, put together."""

from __future__ import annotations

from random import Random

ODD = ("nan", "inf", "-1", "1e999", "NaN", "Infinity", "9" * 400, "0x1", "٣", ".", ",", "null", "true", '"', "{", "}")


def mutate(random: Random, text: str, others: list[str]) -> str:
    """`text` after one to four of these things."""
    for _ in range(random.randint(1, 4)):
        text = random.choice(MUTATIONS)(random, text, others)
    return text[:1_200_000]


def _cut(random: Random, text: str, others: list[str]) -> str:
    return text[: random.randint(0, len(text))]


def _cut_out(random: Random, text: str, others: list[str]) -> str:
    start = random.randint(0, len(text))
    return text[:start] + text[start + random.randint(1, 200) :]


def _double_line(random: Random, text: str, others: list[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = random.randrange(len(lines))
    return "".join(lines[: at + 1] + lines[at:])


def _swap_lines(random: Random, text: str, others: list[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def _other_digits(random: Random, text: str, others: list[str]) -> str:
    places = [i for i, char in enumerate(text) if char.isdecimal()] or [0]
    at = random.choice(places)
    return text[:at] + random.choice("0123456789") + text[at + 1 :]


def _odd_value(random: Random, text: str, others: list[str]) -> str:
    places = [i for i, char in enumerate(text) if char.isdecimal()] or [0]
    at = random.choice(places)
    return text[:at] + random.choice(ODD) + text[at + random.randint(0, 6) :]


def _odd_character(random: Random, text: str, others: list[str]) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice("\x00\x0b\x1b\ufeff\u2028\ud7ff\r\t") + text[at:]


def _decimal_commas(random: Random, text: str, others: list[str]) -> str:
    return text.replace(".", ",")


def _long_line(random: Random, text: str, others: list[str]) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice("9 ax{[\t") * random.randint(1000, 200_000) + text[at:]


def _together(random: Random, text: str, others: list[str]) -> str:
    return text + random.choice(others)


MUTATIONS = (
    _cut,
    _cut_out,
    _double_line,
    _swap_lines,
    _other_digits,
    _odd_value,
    _odd_character,
    _decimal_commas,
    _long_line,
    _together,
)
