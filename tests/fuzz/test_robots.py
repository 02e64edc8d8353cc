"""robots.txt of any text: rules that answer, in time that grows with the text and no faster."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from fairlead.scrape.fetch.fetcher import ROBOT
from fairlead.scrape.fetch.robots import own_groups, parse_robots
from tests.fuzz.budget import at_most, budget_of

AGENTS = st.sampled_from(
    ["*", "fairlead", "FairLead", "fair", "*lead", "f*", "other", "fairleadbot", "x*", "a b", ""]
)
PATHS = st.sampled_from(
    ["/", "/a", "/*a", "/a$", "*", "/a*b$", "", "a", "/%61", "/é", "/index.html", "/a#b"]
)
NAMES = st.sampled_from(["User-agent", "user agent", "UserAgent", " USER-AGENT "])
LINES = st.one_of(
    st.builds("{}{} {}".format, NAMES, st.sampled_from([":", " :", ""]), AGENTS),
    st.builds(
        "{}: {}".format, st.sampled_from(["Disallow", "Allow", "disalow", "Sitemap", "Host"]), PATHS
    ),
    st.builds("Crawl-delay: {}".format, st.sampled_from(["1", "0.5", "x", "nan", "1e400", "-1"])),
    st.sampled_from(
        ["", "# a comment", "unknown: x", "Request-rate: 1/5", "Visit-time: 0400-0845"]
    ),
    st.text(max_size=30),
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x0b"])
FILES = st.lists(st.tuples(LINES, ENDS), max_size=25).map(
    lambda lines: "".join(line + end for line, end in lines)
)
URLS = (
    "http://a.example/",
    "http://a.example/a",
    "http://a.example/b/a?x=a",
    "http://a.example/aXb",
)


@budget_of(1 / 3)
@given(FILES)
def test_the_groups_of_others_change_nothing(text: str) -> None:
    whole, own = Protego.parse(text), parse_robots(text)
    assert list(own.sitemaps) == list(whole.sitemaps)
    assert own.crawl_delay(ROBOT) == whole.crawl_delay(ROBOT)
    for url in URLS:
        assert own.can_fetch(url, ROBOT) == whole.can_fetch(url, ROBOT), (url, own_groups(text))


@budget_of(1 / 3)
@given(st.text())
def test_any_text_is_read(text: str) -> None:
    rules = parse_robots(text)
    for url in URLS:
        assert rules.can_fetch(url, ROBOT) in (True, False)


@budget_of(1 / 3)
@given(st.lists(LINES, min_size=1, max_size=4), st.integers(1, 40_000))
def test_what_is_repeated_takes_linear_time(lines: list[str], times: int) -> None:
    text = "".join(f"{line}{number}\n" for number in range(times) for line in lines)[: 500 * 1024]
    with at_most(10.0):
        parse_robots(text).can_fetch(URLS[1], ROBOT)
