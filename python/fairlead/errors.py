"""The closed tree of errors.

A `FairleadError` is an answer: it has a kind (stable code), one HTTP status and a `type` that
clients of OpenAI-style APIs branch on. A `Refusal` is not an answer: it is why a process will not
start.

    Exception
    +-- Refusal                     will not start; one sentence for the operator, exit code 2
    +-- FairleadError
        +-- InvalidRequest          400   the caller sent something that cannot be acted upon
        +-- Unauthenticated         401   no credential, or one that does not count
        +-- Forbidden               403   a credential that counts, but not for this
        +-- NotFound                404   no such resource or route
        +-- ModelNotFound           404   no such model for this caller
        +-- MethodNotAllowed        405
        +-- UpgradeRefused          426   the path opens no WebSocket
        +-- RequestTimeout          408   the caller stopped sending
        +-- ContextTooLong          400   longer than the window of every model that could serve it
        +-- GuardrailBlocked        400   a guardrail found what must not be said
        +-- Conflict                409   the resource is not in the state that the caller assumes
        +-- TooLarge                413
        +-- UriTooLong              414
        +-- UnsupportedMediaType    415
        +-- RateLimited             429   the caller's own limits
        +-- BudgetExceeded          429   what the key may spend
        +-- CallTooDear             402   more than the caller lets the call cost
        +-- TokenLimitExceeded      429   the tokens that the key may use
        +-- AccountsBusy            429   the limits of every connection that may serve it
        +-- LeaseUnavailable        429   every connection that may serve it is leased
        +-- LeaseStale              409   the lease is over, or another took its place
        +-- UnpricedModel           403   a model without a price, for a key with a limit in dollars
        +-- HeadersTooLarge         431
        +-- ClientGone              499   nobody is left to answer; seen in records only
        +-- Internal                500   a defect of fairlead
        +-- UpstreamRefused         502   no connection to the provider
        +-- ProxyFailed             502   the outbound proxy could not be used
        +-- UpstreamReset           502   the provider broke the connection
        +-- UpstreamInvalid         502   the provider's answer is not what its protocol allows
        +-- EmptyAnswer             502   the provider's answer has nothing in it
        +-- AnswerRejected          502   the provider's answer breaks the combo's rules for answers
        +-- UpstreamAuth            502   the provider refused the connection's credential
        +-- UpstreamStatus          502   the provider answered with another error
        +-- UpstreamRateLimited     429   the provider's limits
        +-- UpstreamOverloaded      503   the provider is overloaded
        +-- UpstreamTimeout         504   the provider was too slow to answer
        +-- UpstreamFirstTokenTimeout  504   ... to send the first event of a stream
        +-- UpstreamIdleTimeout     504   ... to continue in the middle of an answer
        +-- NoRoute                 503   no usable connection for the model
        +-- LimitsUnknown           503   what the key has used is being looked up
        +-- Overloaded              503   fairlead's own bounds are reached
        +-- Draining                503   fairlead is stopping
        +-- ControlUnavailable      503   the control plane does not answer
        +-- StorageUnavailable      503   the database does not answer

The relay plane has the same list in Rust (`fairlead._core.error_kinds()`); a test compares the two.
"""

from __future__ import annotations

from typing import ClassVar


class Refusal(Exception):
    """Raised when a process must not start. `sentence` says what is wrong and what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class FairleadError(Exception):
    """An error response.

    `message` is for people and never holds a secret, a prompt or an upstream body. `param` names the field that
    is wrong. `retry_after_s` becomes `Retry-After`. `extra` holds further members of the body, beside `error`.
    """

    kind: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: int | None = None,
        extra: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s
        self.extra = extra or {}
        self.headers: dict[str, str] = {}
        """Further headers of the answer."""


class InvalidRequest(FairleadError):
    kind, status, type = "invalid_request", 400, "invalid_request_error"


class Unauthenticated(FairleadError):
    kind, status, type = "unauthenticated", 401, "authentication_error"


class Forbidden(FairleadError):
    kind, status, type = "forbidden", 403, "permission_error"


class NotFound(FairleadError):
    kind, status, type = "not_found", 404, "invalid_request_error"


class ModelNotFound(FairleadError):
    kind, status, type = "model_not_found", 404, "invalid_request_error"


class MethodNotAllowed(FairleadError):
    kind, status, type = "method_not_allowed", 405, "invalid_request_error"


class UpgradeRefused(FairleadError):
    kind, status, type = "upgrade_refused", 426, "invalid_request_error"


class RequestTimeout(FairleadError):
    kind, status, type = "request_timeout", 408, "invalid_request_error"


class ContextTooLong(FairleadError):
    kind, status, type = "context_length_exceeded", 400, "invalid_request_error"


class GuardrailBlocked(FairleadError):
    kind, status, type = "guardrail_blocked", 400, "invalid_request_error"


class Conflict(FairleadError):
    kind, status, type = "conflict", 409, "invalid_request_error"


class TooLarge(FairleadError):
    kind, status, type = "too_large", 413, "invalid_request_error"


class UriTooLong(FairleadError):
    kind, status, type = "uri_too_long", 414, "invalid_request_error"


class UnsupportedMediaType(FairleadError):
    kind, status, type = "unsupported_media_type", 415, "invalid_request_error"


class RateLimited(FairleadError):
    kind, status, type = "rate_limited", 429, "rate_limit_error"


class BudgetExceeded(FairleadError):
    kind, status, type = "budget_exceeded", 429, "rate_limit_error"


class CallTooDear(FairleadError):
    kind, status, type = "call_too_dear", 402, "billing_error"


class TokenLimitExceeded(FairleadError):
    kind, status, type = "token_limit_exceeded", 429, "rate_limit_error"


class AccountsBusy(FairleadError):
    kind, status, type = "accounts_busy", 429, "rate_limit_error"


class LeaseUnavailable(FairleadError):
    kind, status, type = "LEASE_CAPACITY_UNAVAILABLE", 429, "lease_error"


class LeaseStale(FairleadError):
    kind, status, type = "LEASE_FENCE_STALE", 409, "lease_error"


class UnpricedModel(FairleadError):
    kind, status, type = "unpriced_model", 403, "permission_error"


class HeadersTooLarge(FairleadError):
    kind, status, type = "headers_too_large", 431, "invalid_request_error"


class ClientGone(FairleadError):
    kind, status, type = "client_gone", 499, "invalid_request_error"


class Internal(FairleadError):
    kind, status, type = "internal", 500, "server_error"


class UpstreamRefused(FairleadError):
    kind, status, type = "upstream_refused", 502, "upstream_error"


class ProxyFailed(FairleadError):
    kind, status, type = "proxy_failed", 502, "upstream_error"


class UpstreamReset(FairleadError):
    kind, status, type = "upstream_reset", 502, "upstream_error"


class UpstreamInvalid(FairleadError):
    kind, status, type = "upstream_invalid", 502, "upstream_error"


class EmptyAnswer(FairleadError):
    kind, status, type = "empty_answer", 502, "upstream_error"


class AnswerRejected(FairleadError):
    kind, status, type = "answer_rejected", 502, "upstream_error"


class UpstreamAuth(FairleadError):
    kind, status, type = "upstream_auth", 502, "upstream_error"


class UpstreamStatus(FairleadError):
    kind, status, type = "upstream_status", 502, "upstream_error"


class UpstreamRateLimited(FairleadError):
    kind, status, type = "upstream_rate_limited", 429, "rate_limit_error"


class UpstreamOverloaded(FairleadError):
    kind, status, type = "upstream_overloaded", 503, "upstream_error"


class UpstreamTimeout(FairleadError):
    kind, status, type = "upstream_timeout", 504, "upstream_error"


class UpstreamFirstTokenTimeout(FairleadError):
    kind, status, type = "upstream_first_token_timeout", 504, "upstream_error"


class UpstreamIdleTimeout(FairleadError):
    kind, status, type = "upstream_idle_timeout", 504, "upstream_error"


class NoRoute(FairleadError):
    kind, status, type = "no_route", 503, "server_error"


class LimitsUnknown(FairleadError):
    kind, status, type = "limits_unknown", 503, "server_error"


class Overloaded(FairleadError):
    kind, status, type = "overloaded", 503, "server_error"


class Draining(FairleadError):
    kind, status, type = "draining", 503, "server_error"


class ControlUnavailable(FairleadError):
    kind, status, type = "control_unavailable", 503, "server_error"


class StorageUnavailable(FairleadError):
    kind, status, type = "storage_unavailable", 503, "server_error"


class OwnerStorageFull(RateLimited):
    """The owner has used up its storage quota."""


class StorageFull(StorageUnavailable):
    """The gateway's storage quota is used up, or the disk is full."""


KINDS: dict[str, type[FairleadError]] = {cls.kind: cls for cls in FairleadError.__subclasses__()}
