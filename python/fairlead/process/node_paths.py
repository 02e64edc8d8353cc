"""The paths under which the node of a relay brings control what its workers recorded."""

from __future__ import annotations

from typing import Final

NODE_PATH: Final = "/internal/node"
SEGMENTS_PATH: Final = "/internal/node/segments"
BODIES_PATH: Final = "/internal/node/bodies"
RESPONSES_PATH: Final = "/internal/node/responses"
