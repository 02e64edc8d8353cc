"""Connections as the API shows them: no secret, times as ISO 8601."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from fairlead.gateway.providers.fields import MASK, ProviderSpecific
from fairlead.gateway.providers.limits import LIMITS
from fairlead.gateway.providers.probe import Finding
from fairlead.gateway.providers.specific_data import show_specific
from fairlead.gateway.providers.table import Connection
from fairlead.gateway.resilience.states import ConnectionState
from fairlead.moment import Time, moment_of
from fairlead.wire import Wire


class ModelView(Wire):
    """A model as the provider names it; sizes in tokens where known."""

    id: str
    owned_by: str | None = None
    created: int | None = None
    context_length: int | None = None
    max_output_tokens: int | None = None


class ConnectionView(Wire):
    """`apiKey` is a mask with the key's last four characters, null where there is no key."""

    id: str
    provider: str
    auth_type: str
    name: str
    display_name: str | None
    api_key: str | None
    priority: int
    weight: int
    is_active: bool
    state: str = Field(
        description="`active`, `cooling`, `quota-exhausted`, `policy-blocked`, `terminal` or "
        "`deactivated`: whether requests are served over it now."
    )
    state_reason: str | None
    state_until: Time | None
    default_model: str | None
    max_concurrent: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    min_gap_ms: int | None
    queue_depth: int | None
    queue_timeout_ms: int | None
    quota_window_thresholds: dict[str, float] | None
    provider_specific_data: ProviderSpecific
    test_status: str | None
    last_error: str | None
    last_error_at: Time | None
    last_tested: Time | None
    models: list[ModelView] | None
    created_at: Time
    updated_at: Time


class OneConnection(Wire):
    connection: ConnectionView


class ConnectionList(Wire):
    connections: list[ConnectionView]
    total: int
    limit: int
    offset: int


class DiagnosisView(Wire):
    type: str


class TestView(Wire):
    """`latencyMs` is milliseconds, `statusCode` what the provider answered, null when it did
    not.
    """

    __test__ = False

    valid: bool
    error: str | None
    warning: str | None
    diagnosis: DiagnosisView
    latency_ms: int
    status_code: int | None
    tested_at: Time


class ValidationView(Wire):
    """`method` says how it was found out: `models`, by asking for the list of models."""

    valid: bool
    error: str | None
    warning: str | None
    method: Literal["models"]


class ModelsView(Wire):
    """`source` says who named the models: the provider when it was last tested, or the
    catalogue.
    """

    provider: str
    connection_id: str
    models: list[ModelView]
    source: Literal["upstream", "local_catalog"]


def show_connection(connection: Connection, condition: ConnectionState) -> ConnectionView:
    """The connection without its secrets."""
    tail = connection.api_key_tail
    models = connection.models
    return ConnectionView.model_construct(
        id=connection.id,
        provider=connection.provider,
        auth_type=connection.auth_type,
        name=connection.name,
        display_name=connection.display_name,
        api_key=None if tail is None else MASK + tail,
        priority=connection.priority,
        weight=connection.weight,
        is_active=connection.is_active,
        state=condition.state,
        state_reason=condition.reason,
        state_until=_moment(condition.until_ms),
        default_model=connection.default_model,
        **{name: getattr(connection, name) for name in LIMITS},
        quota_window_thresholds=connection.quota_window_thresholds,
        provider_specific_data=show_specific(connection.provider_specific),
        test_status=connection.test_status,
        last_error=connection.last_error,
        last_error_at=_moment(connection.last_error_at_ms),
        last_tested=_moment(connection.last_tested_at_ms),
        models=None if models is None else [show_model(model) for model in models],
        created_at=moment_of(connection.created_at_ms),
        updated_at=moment_of(connection.updated_at_ms),
    )


def show_model(model: dict[str, Any]) -> ModelView:
    """A known model without its price."""
    shown: dict[str, Any] = {name: model.get(name) for name in ModelView.model_fields}
    return ModelView.model_construct(**shown)


def show_test(finding: Finding, tested_at_ms: int) -> TestView:
    """The answer to a test."""
    return TestView.model_construct(
        valid=finding.valid,
        error=finding.error,
        warning=finding.warning,
        diagnosis=DiagnosisView(type=finding.diagnosis),
        latency_ms=finding.latency_ms,
        status_code=finding.status_code,
        tested_at=moment_of(tested_at_ms),
    )


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else moment_of(ms)
