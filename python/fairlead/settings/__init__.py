"""The settings of a fairlead process, in groups by concern, one file each.

`ServeSettings.load(**flags)` reads them once, in the process of `fairlead serve`: flags first, then
environment, then defaults. The two planes get what they need from `relay_config` and
`control_config` (docs/explanation/contracts.md) and read no other environment variable, but for
OpenTelemetry's own (`process/tracing.py`).
"""

from __future__ import annotations

from fairlead.settings.access import PASSWORD_MAX_CHARS
from fairlead.settings.control import ControlConfig
from fairlead.settings.fields import ServeFields

__all__ = ["PASSWORD_MAX_CHARS", "ControlConfig", "ServeFields"]
