"""When a schedule is due: cron times by the clock of a time zone, daylight saving included."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, available_timezones

from celery.schedules import ParseException, crontab
from cron_descriptor import Options, get_description
from django_celery_beat.models import CrontabSchedule

from experiments.registry.errors import RequestError

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
MOST_CHARS = 120
_MOST_DAYS = 8 * 366 + 1
"""The longest pause between two 29th of February."""


def crontab_of(expression: str, zone: str) -> CrontabSchedule:
    """The stored crontab for five fields such as "30 2 * * 1-5". RequestError names the field that is wrong."""
    parts = expression.split()
    if len(parts) != len(FIELDS) or len(expression) > MOST_CHARS:
        raise RequestError(
            "Give five fields: minute, hour, day of the month, month, day of the week (0 is Sunday), "
            "such as 30 2 * * 1-5.",
            field="cron",
        )
    if zone not in available_timezones():
        raise RequestError(f"There is no time zone {zone[:60]!r}; write it as Europe/Berlin.", field="time_zone")
    named = dict(zip(FIELDS, parts, strict=True))
    try:
        crontab(**named)
    except (ParseException, ValueError) as error:
        raise RequestError(f"This is no cron expression: {str(error).rstrip('.')}.", field="cron") from error
    unsaved = CrontabSchedule(**named, timezone=ZoneInfo(zone))
    if next(due_times(unsaved, datetime.now(UTC)), None) is None:
        raise RequestError("This day never comes.", field="cron")
    found = CrontabSchedule.objects.filter(**named, timezone=ZoneInfo(zone)).first()  # it has no unique key
    return found or CrontabSchedule.objects.create(**named, timezone=ZoneInfo(zone))


def expression_of(stored: CrontabSchedule) -> str:
    """The five fields in one line."""
    return " ".join(getattr(stored, name) for name in FIELDS)


def in_words(stored: CrontabSchedule) -> str:
    """The expression as people say it: "At 02:30, Monday through Friday, Europe/Berlin"."""
    options = Options()
    options.use_24hour_time_format, options.locale_code = True, "en_US"
    return f"{get_description(expression_of(stored), options)}, {stored.timezone}"


def next_time(stored: CrontabSchedule, after: datetime) -> datetime:
    return next(due_times(stored, after))


def next_times(stored: CrontabSchedule, after: datetime, count: int) -> list[datetime]:
    return list(islice(due_times(stored, after), count))


def due_times(stored: CrontabSchedule, after: datetime) -> Iterator[datetime]:
    """The times after `after`, in UTC and in order.

    A time of the clock that daylight saving skips is due an hour later by the clock (02:30 at 03:30), one that comes
    twice is due the first time only. Unlike in cron, the day of the month and that of the week must both fit.
    """
    cron = crontab(**{name: getattr(stored, name) for name in FIELDS})
    zone: ZoneInfo = stored.timezone
    times = [time(hour, minute) for hour in sorted(cron.hour) for minute in sorted(cron.minute)]
    day = after.astimezone(zone).date() - timedelta(days=1)  # a skipped time at midnight is due on the next day
    last = after
    for _ in range(_MOST_DAYS):
        if _fits(cron, day):
            for at in sorted(datetime.combine(day, clock, zone).astimezone(UTC) for clock in times):
                if at > last:
                    last = at
                    yield at
        day += timedelta(days=1)


def _fits(cron: crontab, day: date) -> bool:
    week_day = day.isoweekday() % 7
    return day.month in cron.month_of_year and day.day in cron.day_of_month and week_day in cron.day_of_week
