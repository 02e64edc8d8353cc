"""robots.txt in time that grows with its length.

The parser keeps every group, and gives each rule to each agent of its group: a file of half a megabyte that names
sixteen thousand agents before twenty thousand rules asks for hundreds of millions of them. We are one agent. So what
is addressed to others is put under one name before the parser sees it.
"""

from __future__ import annotations

from typing import Final

from protego import Protego

from fairlead.scrape.fetch.fetcher import ROBOT

_OTHERS: Final = "-"
_AGENT_FIELDS: Final = frozenset({"user-agent", "useragent", "user agent"})
_OTHER_FIELDS: Final = frozenset(
    {
        "disallow",
        "dissallow",
        "dissalow",
        "disalow",
        "diasllow",
        "disallaw",
        "allow",
        "sitemap",
        "sitemaps",
        "site-map",
        "crawl-delay",
        "crawl delay",
        "request-rate",
        "request rate",
        "visit-time",
        "visit time",
        "host",
    }
)


def text_of(body: bytes) -> str:
    """The text of a robots.txt, which is in UTF-8, with or without a byte order mark."""
    return body.decode("utf-8-sig", "replace")


def parse_robots(text: str) -> Protego:
    """The rules of a robots.txt. Only those for our robot are kept apart, so only they may be asked for."""
    return Protego.parse(own_groups(text))


def own_groups(text: str) -> str:
    """The text with the agents of all groups that are not for our robot under one name."""
    lines = text.splitlines()
    agents = [_agent(line) for line in lines]
    own = max((each for each in agents if each), key=_score, default="")
    if _score(own) == 0:
        own = ""
    for number, agent in enumerate(agents):
        if agent:
            lines[number] = f"User-agent: {own if agent == own else _OTHERS}"
    return "\n".join(lines)


def _agent(line: str) -> str:
    """The agent that a line names, without wildcards as the parser takes it; empty where it names none."""
    line = line.partition("#")[0].strip()
    field, colon, value = line.partition(":")
    field = field.strip().lower()
    if not colon or field not in _AGENT_FIELDS:
        if field in _OTHER_FIELDS or (colon and (not value or value[0].isspace())):
            return ""
        words = line.split(maxsplit=2)
        if words and words[0].lower() in _AGENT_FIELDS:
            value = " ".join(line.split()[1:])
        elif " ".join(words[:2]).lower() in _AGENT_FIELDS:
            value = " ".join(line.split()[2:])
        else:
            return ""
    agent = value.strip().lower()
    return agent if agent == "*" else agent.replace("*", "") or agent


def _score(agent: str) -> int:
    """How well an agent matches ours, by the parser's rule: the longest name that ours begins with, else the
    wildcard.
    """
    if agent == "*":
        return 1
    return len(agent) if agent and ROBOT.startswith(agent) else 0
