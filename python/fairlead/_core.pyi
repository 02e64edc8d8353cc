"""What Python sees of the Rust side. Written by hand and held against the built module by ``mypy.stubtest``."""

from collections.abc import Sequence
from typing import Any, Final, final

__all__ = [
    "MIN_BODY_BYTES_PER_S",
    "SEND_PATIENCE_S",
    "AddressPatterns",
    "Engine",
    "Exchange",
    "Listener",
    "Records",
    "Socket",
    "address_allowed",
    "anthropic_error_type",
    "canonical_model",
    "context_catalogue",
    "error_kinds",
    "flattened",
    "google_assertion",
    "guardrails",
    "hash_secret",
    "is_address_listed",
    "is_schedule_open",
    "judge_guardrails",
    "key_scopes",
    "limit_window",
    "model_address",
    "model_is_named",
    "model_without_folder",
    "new_key",
    "new_webhook_secret",
    "pattern_fault",
    "person_may",
    "preview_context",
    "read_form",
    "read_output_filters",
    "read_page",
    "read_records",
    "record_columns",
    "routes",
    "seal",
    "sign_aws",
    "sign_webhook",
    "sign_webhook_token",
    "tier_of",
    "unseal",
    "verify_webhook",
    "version",
]

# A caller that takes no byte of what is to be sent for this long has left.
SEND_PATIENCE_S: Final[int]
# A body may be silent for its idle time; over its whole length it must also come at this rate.
MIN_BODY_BYTES_PER_S: Final[int]

@final
class Listener:
    """The engine with a listener of its own: nothing of Python on a request's way. Make it after any fork.

    ``config``: the relay configuration as JSON, ``listener``: the listener's own (``docs/explanation/contracts.md``).
    ``ValueError`` says why it cannot be opened.
    """

    def __new__(cls, config: bytes, listener: bytes) -> Listener: ...
    def announce_drain(self) -> int:
        """Says that a drain is to come, and goes on serving. How long to wait before ``drain``, milliseconds."""

    def drain(self) -> None:
        """No connection and no request more; what is open has until the configured deadline."""

    def is_drained(self) -> bool:
        """Whether nothing is open any more, or what is has had its time; to be asked a few times a second."""

    def reload(self) -> None:
        """Reads the certificate and its key again."""

    def stop(self) -> None:
        """Ends every connection, seals the spool and ends the threads."""

@final
class AddressPatterns:
    """The regular expressions by which a crawl or map chooses addresses, compiled. Path patterns look at the path, the
    others at the whole address.

    ``ValueError`` has the kind of fault (``unreadable``, ``too_large``, ``too_large_together``) and the number of the
    pattern, counted through the lists in order.
    """

    def __new__(
        cls,
        include_paths: Sequence[str],
        exclude_paths: Sequence[str],
        include: Sequence[str],
        exclude: Sequence[str],
    ) -> AddressPatterns: ...
    def accepts(self, address: str, path: str) -> bool:
        """Whether the address, which has this path, passes."""

@final
class Engine:
    """One relay worker's engine; make it after any fork.

    ``config``: the relay configuration as JSON (``docs/explanation/contracts.md``). ``ValueError`` when it cannot
    be used.
    """

    def __new__(cls, config: bytes) -> Engine: ...
    def ready_descriptor(self) -> int:
        """The descriptor that becomes readable when ``ready()`` has something."""

    def ready(self) -> list[int]:
        """Ids of exchanges that asked to be told and now have something."""

    def admit(self, scope: dict[str, Any]) -> Exchange:
        """Admits the head of an ASGI HTTP scope."""

    def admit_socket(self, scope: dict[str, Any]) -> Socket | Exchange:
        """Admits the head of an ASGI WebSocket scope; an ``Exchange`` has the refusal."""

    def announce_drain(self) -> int:
        """Says that this worker will drain, and goes on serving. Milliseconds to wait before ``begin_drain``."""

    def begin_drain(self) -> None:
        """Nothing new from here on; what is open has until the configured deadline."""

    def in_flight(self) -> int:
        """Requests that are not finished."""

    def drain_ms(self) -> int:
        """How long open requests may go on after ``begin_drain``, milliseconds."""

    def body_idle_ms(self) -> int:
        """How long a body may be silent, milliseconds."""

    def stop(self) -> None:
        """Seals the spool and ends the engine's thread."""

@final
class Exchange:
    """One request and its answer. What is not there yet is ``None``; ``id`` will be among the engine's ready ones."""

    @property
    def id(self) -> int: ...
    @property
    def wants_body(self) -> bool: ...
    @property
    def is_upload(self) -> bool: ...
    def feed(self, piece: bytes, more: bool) -> bool:
        """Takes a piece of the request's body. ``True``: more is wanted."""

    def has_capacity(self) -> bool:
        """Whether more of an upload may be fed now. ``False``: not yet."""

    def time_out(self) -> None:
        """The body did not come in time: the answer says so."""

    def end_early(self) -> None:
        """The body ended before it was whole: for a caller who is still there the answer says so."""

    def head(self) -> tuple[int, list[tuple[bytes, bytes]]] | None:
        """Status and headers of the answer, once."""

    def take(self) -> tuple[bytes, bool] | None:
        """What is there of the answer's body, and whether more will come.

        ``ConnectionAbortedError`` when the answer stops short: the connection must be broken.
        """

    def cancel(self) -> None:
        """The client is gone: the work stops and settles."""

@final
class Records:
    """Settled requests as columns, for whoever takes the Arrow PyCapsule interface: strings are views."""

    @property
    def rejected(self) -> list[bytes]:
        """The lines that are no records."""
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Socket:
    """A connection of frames. What is not there yet is ``None``; ``id`` will be among the engine's ready ones."""

    @property
    def id(self) -> int: ...
    def receive(self, text: str | None) -> None:
        """A text came; ``None`` for what is no text."""

    def is_accepted(self) -> bool | None:
        """Whether the handshake may be accepted; ``None`` while that is not known."""

    def refusal(self) -> Exchange | None:
        """The exchange with the answer of a handshake that is refused."""

    def take(self) -> tuple[list[str], tuple[int, str] | None] | None:
        """Texts to send, and the code and the reason to close with after them."""

    def is_idle(self) -> bool:
        """No request is under way."""

    def close(self) -> None:
        """The caller is gone: what runs ends and settles."""

def routes() -> list[dict[str, Any]]:
    """The route table: ``method``, ``path``, ``tier``, ``answered_by``, ``endpoint``, ``surface``,
    ``body_limit_bytes``, ``takes_form``, ``body`` (``none``, ``json``, ``form``, ``file``, ``upload``, ``unread``) and
    ``summary`` of each.
    """

def tier_of(method: str, path: str) -> str | None:
    """Who may call a route; ``None`` if there is no such route."""

def person_may(manages: bool, method: str, path: str) -> bool:
    """Whether a person who signed in may call a route of people, as the relay decides it. The local command line
    manages. Routes of models and of keys are not for people.
    """

def key_scopes() -> list[dict[str, Any]]:
    """The narrow scopes of keys: ``scope``, ``summary``, ``is_own`` (rows of the key alone), and ``routes`` as pairs of
    method and path.
    """

def error_kinds() -> list[dict[str, Any]]:
    """Every error kind: ``kind``, ``status``, ``type``, ``summary``."""

def record_columns() -> list[dict[str, Any]]:
    """The columns of a record, in the order of the table ``requests``: ``name``, ``is_required``."""

def read_records(data: bytes) -> Records:
    """The records of NDJSON. Unknown fields are left out; a line that lacks a required one or has another type is
    rejected.
    """

def seal(key: bytes, record_id: str, plaintext: bytes) -> bytes:
    """AES-256-GCM under a key of 32 bytes; the record's id is associated data."""

def unseal(key: bytes, record_id: str, sealed: bytes) -> bytes:
    """Opens what ``seal`` made; ``ValueError`` when it does not open."""

def new_key() -> tuple[str, str]:
    """A fresh API key and its hash."""

def hash_secret(text: str) -> str:
    """Lower-case hex of the SHA-256 of a random secret."""

def limit_window(period: str, reset_minute: int, now_ms: int, zone: str = "UTC") -> tuple[int, int]:
    """Start and end, Unix milliseconds, of the ``day``, ``week`` or ``month`` that ``now_ms`` is in.

    Each begins at ``reset_minute`` of its first day, in the zone of this IANA name. ``ValueError`` for
    another period.
    """

def canonical_model(name: str) -> str:
    """A model's one name, without Google's folder; ``ValueError`` says which rule a spelling breaks."""

def read_form(content_type: str, body: bytes) -> list[tuple[str, str | None, bytes]]:
    """Name, file name or none, and content of a form's parts, as the relay reads it.

    ``ValueError`` says why a body is no form that every reader reads alike.
    """

def anthropic_error_type(status: int) -> str:
    """The type that Anthropic's API gives to an error of this HTTP status."""

def model_without_folder(model: str) -> str:
    """A name as a provider knows it, without Google's folder before it."""

def model_address(model: str) -> str:
    """A model's percent-encoded path below a base address, such as ``models/<model>``.

    ``ValueError`` says which rule a name breaks that is no part of an address.
    """

def model_is_named(pattern: str, model: str, any_case: bool) -> bool:
    """Whether a pattern of a key speaks of a model; ``any_case`` for a block, which holds for every spelling."""

def is_schedule_open(schedule: str, unix_ms: int) -> bool:
    """Whether a key with this ``accessSchedule``, a JSON text, may be used at a time.

    ``ValueError`` where it cannot be read.
    """

def is_address_listed(allowlist: list[str], address: str) -> bool:
    """Whether a key with this ``ipAllowlist`` may be used from an address; a text that is none is this machine's.

    ``ValueError`` names what in the list is no network.
    """

def pattern_fault(pattern: str) -> str | None:
    """Why a text is no pattern of tools' names, as the relay reads it; ``None`` for one that is."""

def address_allowed(address: str, policy: str, networks: str = "") -> bool:
    """Whether the gateway may dial an IP address; ``policy`` is ``operator`` or ``public``.

    ``networks``: a comma list of CIDRs that ``public`` may reach too. Link-local, metadata and multicast addresses are
    never allowed. ``ValueError`` when a text is not what it should be.
    """

def flattened(html: str) -> str:
    """The page without tags that are nested deeper than any real page has them: a parser takes seconds for such. Most
    pages come back as they are.
    """

def guardrails() -> list[tuple[str, int]]:
    """Every guardrail with its priority, the first to run first."""

def context_catalogue() -> bytes:
    """Modes, engines, levels, packs with their rules, and filters of what makes conversations shorter, as JSON."""

def preview_context(dialect: str, body: bytes, plan: bytes) -> bytes:
    """What a plan makes of a body of a dialect, as JSON.

    ``plan``: JSON of ``stages`` (``engine``, ``level``), ``languages`` and ``filters`` (``toml``, ``sha256``).
    ``ValueError`` for a plan that cannot be.
    """

def read_output_filters(toml: str) -> bytes:
    """The SHA-256 of a TOML text and the filters in it, as JSON; ``ValueError`` says why one cannot be read."""

def judge_guardrails(
    body: bytes, actions: bytes, disabled: list[str]
) -> tuple[list[tuple[str, str]], bytes | None]:
    """What guardrails find in the texts of a JSON body: guardrail and kind, and the body as redacted
    where something was.

    ``actions``: JSON of an action for each guardrail; ``ValueError`` for what is none.
    """

def read_page(
    html: str, base: str, form: str, only_main_content: bool, fit: bool, lists: list[str]
) -> bytes:
    """The content of a page's body: JSON with ``content``, ``links`` (``href`` as written, ``text``), those of
    ``tables``, ``code``, ``images`` that ``lists`` names, ``is_cut`` and ``cut_bytes`` (what a limit left out),
    ``has_frames`` (documents in it are links) and ``visible_chars`` (of the whole page).

    ``html``: as Lexbor wrote it out again, so in order; ``base``: what its addresses are relative to;
    ``form``: ``html``, ``markdown``, ``text``, or empty for no content.
    """

def sign_aws(
    keys: bytes,
    region: str,
    service: str,
    method: str,
    host: str,
    path: str,
    query: str,
    unix_s: int,
    body: bytes | None = None,
) -> list[tuple[str, str]]:
    """The headers that sign a request (AWS Signature Version 4).

    ``keys``: JSON of ``access_key_id``, ``secret_access_key`` and perhaps ``session_token``;
    ``ValueError`` for anything else.
    """

def google_assertion(account: bytes, unix_s: int) -> str:
    """The signed assertion of a Google service account (RFC 7523).

    ``account``: the key file's JSON; ``ValueError`` says what is wrong with it.
    """

def new_webhook_secret() -> str:
    """A fresh ``whsec_...`` of 256 random bits."""

def sign_webhook(secrets: list[str], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of ``webhook-signature``, one signature for each secret; ``ValueError`` for what is no secret or id."""

def sign_webhook_token(
    key: str,
    key_id: str,
    issuer: str,
    audience: str,
    message_id: str,
    timestamp_s: int,
    body: bytes,
) -> str:
    """The value of ``webhook-signature`` for a listener without a secret: a token (RS256) for this delivery alone.

    ``key``: PKCS #8 PEM of an RSA key; ``ValueError`` for what is none.
    """

def verify_webhook(
    secrets: list[str],
    message_id: str,
    timestamp: str,
    signature: str,
    body: bytes,
    now_s: int,
    tolerance_s: int = 300,
) -> None:
    """Returns when a delivery is genuine and of this time; ``ValueError`` says why it is not."""

def version() -> str:
    """The package's version."""
