"""The fields of a combo's form, in groups."""

from __future__ import annotations

from typing import Final

from fairlead.dashboard.form import Field, Group

STRATEGIES: Final = tuple(
    (name, f"{name}: {words}")
    for name, words in (
        ("priority", "the first of the list"),
        ("fill-first", "the first of the list that has room"),
        ("weighted", "by chance, in proportion to the weights"),
        ("round-robin", "each in turn"),
        ("p2c", "of two by chance, the less loaded"),
        ("random", "each as likely"),
        ("strict-random", "by chance, each once before any comes again"),
        ("least-used", "fewest open requests"),
        ("cost-optimized", "cheapest for the request"),
        ("context-optimized", "largest context window"),
        ("cache-optimized", "where the prompt is likely cached"),
        ("headroom", "most quota left"),
        ("reset-aware", "quota that would be lost soon"),
        ("reset-window", "soonest reset of a window"),
        ("lkgp", "the last that served"),
        ("context-relay", "the first, until its quota is nearly used"),
        ("auto", "the best score of price, latency, health, quota"),
        ("fusion", "all at once, and a judge"),
        ("pipeline", "each step in turn"),
    )
)
PACKS: Final = (
    ("", "not set"),
    *(
        (name, name)
        for name in (
            "balanced",
            "ship-fast",
            "cost-saver",
            "quality-first",
            "offline-friendly",
            "reliability-first",
        )
    ),
)
WINDOWS: Final = (("session", "session"), ("weekly", "weekly"), ("monthly", "monthly"))
CONDITIONS: Final = ("exists", "nonEmpty", "equals", "notEquals")
PREDICATES: Final = "config.responseValidation.jsonPathPredicates"
_SHADOWS: Final = "config.shadowRouting"
_STREAMS: Final = (("hold", "are held back until they are judged"), ("pass", "are not judged"))

GROUPS: Final = (
    Group(
        "What it is",
        (
            Field("name", "Name", most=100, is_required=True, example="fast"),
            Field("description", "Description", most=2000),
            Field("strategy", "Strategy", "choice", options=STRATEGIES),
            Field("isActive", "Active", "switch", "Inactive combos are rejected."),
        ),
        is_open=True,
    ),
    Group(
        "Parameters of the strategy",
        (
            Field(
                "config.stickyLimit",
                "A winner stays for",
                "whole",
                "weighted, round-robin.",
                "calls",
            ),
            Field(
                "config.concurrencyPerModel",
                "At once on one target",
                "whole",
                "fill-first, round-robin.",
                "calls",
            ),
            Field(
                "config.windows", "Whose reset counts", "choices", "reset-window.", options=WINDOWS
            ),
            Field(
                "config.handoffThreshold",
                "A session moves on at",
                "decimal",
                "context-relay: the share of the quota that is used, 0 to 1.",
            ),
            Field(
                "config.handoffModel",
                "Who writes the hand-over note",
                hint="context-relay; empty: the next target.",
                example="openai/gpt-4o-mini",
            ),
            Field(
                "config.maxMessagesForSummary",
                "The note is about the last",
                "whole",
                "context-relay: 1 to 200; empty: 30.",
                "messages",
            ),
            Field("config.pack", "Weights", "choice", "auto.", options=PACKS),
            Field(
                "config.judgeModel",
                "Judge",
                hint="fusion: who merges the answers; else the first step.",
                example="openai/gpt-4o",
            ),
            Field(
                "config.minPanel",
                "Answers before the grace",
                "whole",
                "fusion: 1 to 20.",
                "answers",
            ),
            Field("config.stragglerGraceMs", "Grace for stragglers", "whole", "fusion.", "ms"),
            Field("config.panelTimeoutMs", "The whole panel has", "whole", "fusion.", "ms"),
            Field(
                "config.hedging",
                "A slow target is joined by the next",
                "switch",
                "The first to answer wins; both may cost. Not for fusion and pipeline.",
            ),
            Field("config.hedgeDelayMs", "It is waited for alone", "whole", "Empty: 500.", "ms"),
        ),
        hint="Each says which strategies read it.",
    ),
    Group(
        "Who may serve it",
        (
            Field(
                "allowedProviders",
                "Only these providers",
                "lines",
                "Prefixes, one in a line. None: all.",
                example="openai",
            ),
            Field(
                "allowedModelFamilies",
                "Only these families",
                "lines",
                "How names of models begin, one in a line. None: all.",
                example="gpt",
            ),
            Field("contextLength", "It takes", "whole", "Longer requests are refused.", "tokens"),
            Field(
                "contextCacheProtection",
                "A conversation stays where it was",
                "switch",
                "While the target of its last turn is able: its provider may have it in its cache.",
            ),
            Field(
                "config.contextRequirements.minContextWindow",
                "Window at least",
                "whole",
                "",
                "tokens",
            ),
            Field(
                "config.contextRequirements.contextFilterMode",
                "Windows that are too small",
                "choice",
                options=(("lenient", "are tried last"), ("strict", "are left out")),
            ),
            Field(
                "config.contextRequirements.preferLargeContext",
                "Larger windows come first",
                "switch",
                "Whatever the strategy says.",
            ),
        ),
    ),
    Group(
        "Request changes",
        (
            Field(
                "systemMessage",
                "Said before the caller's own instructions",
                "prose",
                most=50_000,
            ),
            Field(
                "toolFilterRegex",
                "Only tools whose names match",
                hint="A regular expression, without look-around.",
                most=1000,
                example="^(get|list)_",
            ),
        ),
    ),
    Group(
        "Deadlines and repetitions",
        (
            Field(
                "config.targetTimeoutMs",
                "One target has",
                "whole",
                "For a whole answer, or the head of a stream.",
                "ms",
            ),
            Field(
                "config.comboTimeoutMs",
                "All together have",
                "whole",
                "From the request's arrival; 0: no limit.",
                "ms",
            ),
            Field(
                "config.maxRetries",
                "One is asked again",
                "whole",
                "0 to 10: after a failure that may pass, before the next.",
                "times",
            ),
            Field("config.retryDelayMs", "Pause before that", "whole", "Empty: 2000.", "ms"),
            Field("config.maxSetRetries", "All are tried again", "whole", "0 to 10.", "times"),
            Field("config.setRetryDelayMs", "Pause before that", "whole", "Empty: 2000.", "ms"),
            Field(
                "config.cooldownWaitMs",
                "Waits for the first in cooldown",
                "whole",
                "While the request is younger than this; 0: not.",
                "ms",
            ),
            Field("config.queueDepth", "Wait at a target", "whole", "0: asks the next.", "calls"),
            Field("config.queueTimeoutMs", "They wait at most", "whole", "", "ms"),
        ),
        hint="Empty: as the defaults of all combos say.",
    ),
    Group(
        "What an answer must be like",
        (
            Field(
                "config.responseValidation.minContentLength", "At least", "whole", "", "characters"
            ),
            Field(
                "config.responseValidation.requiredSubstrings",
                "It has all of these",
                "lines",
                "One in a line.",
            ),
            Field(
                "config.responseValidation.forbiddenSubstrings",
                "It has none of these",
                "lines",
                "One in a line.",
            ),
            Field(
                PREDICATES,
                "Its JSON",
                "lines",
                "One in a line: a path, then exists, nonEmpty, equals or notEquals, then a value as JSON.",
                example='items.0.name nonEmpty\nstatus equals "ok"',
            ),
            Field("config.responseValidation.streams", "Streams", "choice", options=_STREAMS),
        ),
        hint="One that breaks these goes to the next target.",
    ),
    Group(
        "Shadows",
        (
            Field(f"{_SHADOWS}.enabled", "Models are asked in parallel, for comparison", "switch"),
            Field(f"{_SHADOWS}.targets", "Which", "lines", "One in a line.", example="groq/llama"),
            Field(f"{_SHADOWS}.sampleRate", "Share of requests", "decimal", "0 to 1; empty: 0.1."),
            Field(f"{_SHADOWS}.maxTargets", "Of one request", "whole", "Empty: 1.", "shadows"),
            Field(f"{_SHADOWS}.timeoutMs", "Each has", "whole", "Empty: 60000.", "ms"),
        ),
        hint="No caller sees or pays for their answers.",
    ),
)
FIELDS: Final = [field for group in GROUPS for field in group.fields]
