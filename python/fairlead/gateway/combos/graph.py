"""The graph of combos that contain combos: no cycle, and not too deep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.errors import InvalidRequest

MAX_DEPTH = 10


def check_graph(names: Mapping[str, Sequence[str]], start: str) -> None:
    """`InvalidRequest` when a path from `start` returns to a combo on it (the message names the
    path), or is longer than `MAX_DEPTH` combos. `names` gives for each combo the combos that its
    steps name.
    """
    heights: dict[str, int] = {}
    _climb(names, start, [], heights)
    above = _above(names, start, {})
    if above + heights[start] > MAX_DEPTH:
        raise InvalidRequest(
            f"models: combos nest {above + heights[start]} levels deep through `{start}`; "
            f"at most {MAX_DEPTH} levels are allowed. Name models instead of a nested combo.",
            param="models",
        )


def _climb(
    names: Mapping[str, Sequence[str]], name: str, path: list[str], heights: dict[str, int]
) -> int:
    if name in path:
        way = " > ".join([*path[path.index(name) :], name])
        raise InvalidRequest(
            f"models: the combos contain each other: {way}. Remove one of the steps.",
            param="models",
        )
    if name not in heights:
        path.append(name)
        below = [_climb(names, nested, path, heights) for nested in names.get(name, ())]
        path.pop()
        heights[name] = 1 + max(below, default=0)
    return heights[name]


def _above(names: Mapping[str, Sequence[str]], name: str, known: dict[str, int]) -> int:
    """The number of combos above this one, on the longest path. There is no cycle through `name`."""
    if name not in known:
        known[name] = 0
        parents = [parent for parent, nested in names.items() if name in nested]
        known[name] = max((1 + _above(names, parent, known) for parent in parents), default=0)
    return known[name]
