"""Cron expressions: H4, H7 and H12, as a table, against cronsim, and for any expression."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.grid import Rule

NEW_YORK, BELGRADE, LORD_HOWE = "America/New_York", "Europe/Belgrade", "Australia/Lord_Howe"
#: The clocks leap from 2:00 to 3:00 (Lord Howe: 2:30), and go back from 2:00 (3:00, 2:00) later.
SPRING = {NEW_YORK: "2026-03-08", BELGRADE: "2026-03-29", LORD_HOWE: "2026-10-04"}
AUTUMN = {NEW_YORK: "2026-11-01", BELGRADE: "2026-10-25", LORD_HOWE: "2026-04-05"}
DAYS = [(zone, day) for days in (SPRING, AUTUMN) for zone, day in days.items()]
PATTERNS = [
    *("30 2 * * *", "30 1 * * *", "0 2 * * *", "15 2 * * *", "45 1 * * *", "0,30 1-3 * * *"),
    *("*/15 * * * *", "0 * * * *", "59 1-2 * * *", "5 1 * * 0", "* * * * *"),
]
#: Where a clock changes by half an hour, cronsim leaps over real times of these.
RUN_THROUGH = ["30 * * * *", "*/15 3 * * *", "0 */2 * * *", "* 2 * * *"]


def ticks(cron: str, zone: str, day: str, hours: float = 24) -> list[datetime]:
    """Return the ticks of a day, from its midnight on."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    rule, found = Rule.of(cron=cron, timezone=zone), []
    moment = rule.from_(start)
    while moment < start + timedelta(hours=hours):
        found.append(moment)
        moment = rule.after(moment)
    return found


def walls(cron: str, zone: str, day: str, hours: float = 24) -> list[str]:
    found = [tick.astimezone(ZoneInfo(zone)) for tick in ticks(cron, zone, day, hours)]
    return [f"{tick:%H:%M}{'*' * tick.fold}" for tick in found]


def cronsim(cron: str, zone: str, day: str) -> list[datetime]:
    """Return what cronsim has for a day, each moment once and later than the one before."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    end, found = start.astimezone(UTC) + timedelta(hours=24), [start.astimezone(UTC)]
    for tick in CronSim(cron, start - timedelta(seconds=1)):
        moment = tick.astimezone(UTC)
        if moment >= end:
            break
        if moment > found[-1] or (len(found) == 1 and moment == start):
            found.append(moment)
    return found[1:]


@pytest.mark.parametrize(("zone", "day"), DAYS)
@pytest.mark.parametrize("cron", PATTERNS)
def test_the_days_of_a_change_agree_with_cronsim(cron, zone, day):
    assert ticks(cron, zone, day) == cronsim(cron, zone, day)


@pytest.mark.parametrize(("zone", "day"), [pair for pair in DAYS if pair[0] != LORD_HOWE])
@pytest.mark.parametrize("cron", RUN_THROUGH)
def test_whole_hours_agree_with_cronsim(cron, zone, day):
    assert ticks(cron, zone, day) == cronsim(cron, zone, day)


@pytest.mark.parametrize(
    ("cron", "days", "zone", "expected"),
    [
        # A skipped time runs once, right after the gap.
        ("30 2 * * *", SPRING, NEW_YORK, ["03:00"]),
        ("30 2 * * *", SPRING, BELGRADE, ["03:00"]),
        ("15 2 * * *", SPRING, LORD_HOWE, ["02:30"]),
        ("0,30 2 * * *", SPRING, NEW_YORK, ["03:00"]),
        ("30 2,3 * * *", SPRING, BELGRADE, ["03:00", "03:30"]),
        # A repeated fixed time runs once, the first time.
        ("30 1 * * *", AUTUMN, NEW_YORK, ["01:30"]),
        ("30 2 * * *", AUTUMN, BELGRADE, ["02:30"]),
        ("45 1 * * *", AUTUMN, LORD_HOWE, ["01:45"]),
        # Others run through both hours.
        ("*/30 1 * * *", AUTUMN, NEW_YORK, ["01:00", "01:30", "01:00*", "01:30*"]),
        ("*/30 2 * * *", SPRING, NEW_YORK, []),
        ("30 * * * *", AUTUMN, LORD_HOWE, ["00:30", "01:30", "01:30*", "02:30"]),
        ("*/15 3 * * *", SPRING, LORD_HOWE, ["03:00", "03:15", "03:30", "03:45"]),
        (
            "*/15 1 * * *",
            AUTUMN,
            LORD_HOWE,
            ["01:00", "01:15", "01:30", "01:45", "01:30*", "01:45*"],
        ),
    ],
)
def test_the_rules_of_a_change(cron, days, zone, expected):
    assert walls(cron, zone, days[zone], hours=24)[: len(expected) or None] == expected


@pytest.mark.parametrize(
    ("zone", "day"), [(NEW_YORK, AUTUMN[NEW_YORK]), (BELGRADE, SPRING[BELGRADE])]
)
def test_an_interval_of_a_day_is_24_hours(zone, day):
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    rule = Rule.of(every=timedelta(days=1), timezone=zone)
    first = rule.after(start)
    assert (rule.after(first) - first, first.hour) == (timedelta(days=1), 0)
    assert first.tzinfo is UTC


@pytest.mark.parametrize(
    ("cron", "start", "expected"),
    [
        ("0 0 29 2 *", "2026-01-01", ["2028-02-29", "2032-02-29"]),
        ("0 0 29 2 *", "2097-01-01", ["2104-02-29"]),
        ("0 0 31 * *", "2026-01-01", ["2026-01-31", "2026-03-31", "2026-05-31"]),
        ("0 0 L * *", "2028-01-31", ["2028-02-29", "2028-03-31", "2028-04-30"]),
        ("0 0 13 * 5", "2026-02-01", ["2026-02-06", "2026-02-13", "2026-02-20"]),
        ("0 0 13 7 5", "2026-07-11", ["2026-07-13", "2026-07-17"]),
        ("0 0 * * 7", "2026-02-01", ["2026-02-08"]),
        ("0 0 * * 0", "2026-02-01", ["2026-02-08"]),
        ("0 0 * * sun", "2026-02-01", ["2026-02-08"]),
        ("0 0 1 feb-mar *", "2026-01-01", ["2026-02-01", "2026-03-01", "2027-02-01"]),
        ("@monthly", "2026-01-01", ["2026-02-01", "2026-03-01"]),
        ("@YEARLY", "2026-01-01", ["2027-01-01"]),
        ("0 0 * 2 MON#5", "2026-01-01", ["2044-02-29"]),
        (" 0\t0  1,1,1 *  * ", "2026-01-01", ["2026-02-01"]),
    ],
)
def test_leap_days_month_ends_and_grammar(cron, start, expected):
    rule, moment, found = Rule.of(cron=cron), datetime.fromisoformat(start).replace(tzinfo=UTC), []
    for _ in expected:
        moment = rule.after(moment)
        found.append(f"{moment:%Y-%m-%d}")
    assert found == expected


@pytest.mark.parametrize(
    ("cron", "says"),
    [
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 31 4 *", "bad day-of-month"),
        ("0 0 31 2,4,6 *", "bad day-of-month"),
        ("*/61 * * * *", "the step in minute"),
        ("*/0 * * * *", "bad minute"),
        ("0 */25 * * *", "the step in hour"),
        ("5-1 * * * *", "bad minute"),
        ("60 * * * *", "bad minute"),
        ("? * * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 0 0 * *", "bad day-of-month"),
        ("0 0 * * 8", "bad day-of-week"),
        ("0 0 * * ²L", "bad day-of-week"),
        ("* * * * * *", "five fields"),
        ("* * * *", "five fields"),
        ("   ", "five fields"),
        ("@reboot", "@daily"),
        ("* * * * " + "1," * 200 + "1", "characters"),
        (60, "cron is a text"),
    ],
)
def test_what_is_refused_and_why(cron, says):
    with pytest.raises(ScheduleError, match="cron") as caught:
        Rule.of(cron=cron)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({}, "either cron or every"),
        ({"cron": ""}, "either cron or every"),
        ({"cron": "@daily", "every": 60}, "either cron or every"),
        ({"every": 0.9}, "every is from 1 s"),
        ({"every": timedelta(days=367)}, "every is from 1 s"),
        ({"every": float("nan")}, "number of seconds"),
        ({"every": True}, "number of seconds"),
        ({"every": "60"}, "number of seconds"),
        *(({"every": 60, "timezone": zone}, "timezone") for zone in ("Mars/Base", "", "../x", 1)),
        ({"cron": "@daily", "timezone": "America"}, "no time zone 'America'"),
    ],
)
def test_rules_that_are_refused(rule, says):
    with pytest.raises(ScheduleError, match=says):
        Rule.of(**rule)


MOMENTS = st.floats(0, 4e9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
ZONES = st.sampled_from([NEW_YORK, BELGRADE, LORD_HOWE, "UTC", "Pacific/Apia", "Asia/Kathmandu"])


def field(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    steps = st.integers(1, high - low).map("*/{}".format)
    spans = st.tuples(numbers, numbers).map(lambda pair: "{}-{}".format(*sorted(pair)))
    return st.one_of(st.just("*"), numbers.map(str), steps, spans)


CRONS = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)).map(" ".join)
RULES = st.one_of(
    st.builds(lambda cron, zone: Rule.of(cron=cron, timezone=zone), CRONS, ZONES),
    st.builds(lambda every: Rule.of(every=every), st.floats(1, 90_000)),
)


#: Zones of whole hours, as far back as they were set by today's kind of rules.
AGREED = st.sampled_from([NEW_YORK, BELGRADE, "UTC"])
CHANGES = [
    datetime.fromisoformat(days[zone]).replace(tzinfo=ZoneInfo(zone))
    for days in (SPRING, AUTUMN)
    for zone in (NEW_YORK, BELGRADE)
]
NEAR_A_CHANGE = st.builds(
    lambda change, seconds: (change + timedelta(seconds=seconds)).astimezone(UTC),
    st.sampled_from(CHANGES),
    st.floats(0, 86_400),
)


@given(CRONS, AGREED, st.one_of(NEAR_A_CHANGE, MOMENTS.filter(lambda moment: moment.year > 1987)))
def test_any_expression_agrees_with_cronsim(cron, zone, moment):
    """Asked from a day before: cronsim itself forgets, in a repeated hour, what it has met."""
    before = (moment - timedelta(days=1)).astimezone(ZoneInfo(zone))
    met = (tick.astimezone(UTC) for tick in CronSim(cron, before))
    assert Rule.of(cron=cron, timezone=zone).after(moment) == next(t for t in met if t > moment)


@given(RULES, MOMENTS)
def test_the_next_tick_is_later_and_on_the_grid(rule, moment):
    tick = rule.after(moment)
    assert tick > moment
    assert rule.from_(tick) == tick
    assert rule.after(moment + (tick - moment) / 2) == tick


@given(RULES, MOMENTS, st.floats(0, 5_000_000))
def test_the_latest_is_the_last_one_up_to_now(rule, moment, seconds):
    first = rule.after(moment)
    now = first + timedelta(seconds=seconds)
    latest = rule.latest(first, now)
    assert first <= latest <= now < rule.after(latest)
    assert rule.from_(latest) == latest


@given(st.text(max_size=30) | st.text("0123456789*/-,#LW ", max_size=30))
def test_any_text_is_a_rule_or_refused(text):
    try:
        rule = Rule.of(cron=text)
    except ScheduleError:
        return
    assert rule.after(datetime(2026, 1, 1, tzinfo=UTC))


def test_intervals_do_not_drift():
    """H9: whenever a search begins, the ticks are the multiples."""
    rule = Rule.of(every=60)
    start = datetime(2026, 5, 1, 12, 0, 7, 123456, tzinfo=UTC)
    moments = {rule.after(start + timedelta(seconds=7 * n)) for n in range(500)}
    assert {(moment.second, moment.microsecond) for moment in moments} == {(0, 0)}
    assert len(moments) == (7 + 7 * 499) // 60 + 1


@pytest.mark.parametrize(
    ("cron", "timezone"),
    [("* 2 * 3 SUN#2", "America/New_York"), ("*/30 2 * 3 7L", "Europe/Belgrade")],
)
def test_times_that_the_clocks_always_skip_are_refused_soon(cron, timezone):
    """H7: the search looks fifty years ahead, not to the end of the calendar."""
    with pytest.raises(ScheduleError, match="no further match"):
        Rule.of(cron=cron, timezone=timezone)
