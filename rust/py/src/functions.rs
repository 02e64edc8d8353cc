//! Plain functions: tables for the management plane, secrets, the egress policy.

use fairlead_core::guardrail::{self, Actions, Disabled, Guardrail};
use fairlead_core::model_name::{self, Case};
use fairlead_core::policy;
use fairlead_core::routes::people::peoples_fields;
use fairlead_core::routes::scopes::SCOPES;
use fairlead_core::routes::{all, find, Match, Surface, Tier};
use fairlead_core::signature::{self, SigningSecret};
use fairlead_core::{
    aws, generate_key, multipart, AddressSet, EgressPolicy, ErrorKind, LimitPeriod, Networks, Principal, Schedule,
    Sealer, Secret, SecretHash, ServiceAccount, Snapshot, Zone,
};
use fairlead_page::{AddressPatterns, Form, PatternFault, PatternLists, ReadOptions};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::LazyLock;

/// The route table, in search order.
#[pyfunction]
pub(crate) fn routes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    all()
        .map(|route| {
            let entry = PyDict::new(py);
            entry.set_item("method", route.method)?;
            entry.set_item("path", route.path)?;
            entry.set_item("tier", tier(route.tier))?;
            entry.set_item("answered_by", if route.answer.is_control() { "control" } else { "relay" })?;
            entry.set_item("endpoint", route.endpoint)?;
            entry.set_item("surface", surface(route.surface))?;
            entry.set_item("body_limit_bytes", route.body_limit_bytes())?;
            entry.set_item("takes_form", route.takes_form())?;
            entry.set_item("body", route.body.kind())?;
            let is_read = route.method == "GET";
            entry.set_item("peoples_fields", if is_read { &[][..] } else { peoples_fields(route.path) }.to_vec())?;
            entry.set_item("summary", route.summary)?;
            Ok(entry)
        })
        .collect()
}

/// Who may call a route; `None` if there is no such route.
#[pyfunction]
pub(crate) fn tier_of(method: &str, path: &str) -> Option<&'static str> {
    match find(method, path) {
        Match::Found { route, .. } => Some(tier(route.tier)),
        Match::OtherMethod(_) | Match::None => None,
    }
}

/// Whether a person who signed in may call a route of people, as the relay decides it. The local command line manages.
/// Routes of models and of keys are not for people.
#[pyfunction]
pub(crate) fn person_may(manages: bool, method: &str, path: &str) -> bool {
    // Settings of the operator open routes to people without a session alone.
    static NO_SETTINGS: LazyLock<Snapshot> = LazyLock::new(Snapshot::default);
    let Match::Found { route, .. } = find(method, path) else { return false };
    let is_for_people = !matches!(route.tier, Tier::Inference | Tier::Key | Tier::Delegated);
    let person = Principal::Session { user_id: "".into(), manages };
    is_for_people && person.admit(route.tier, method == "GET", &NO_SETTINGS, true).is_ok()
}

/// The error type of Anthropic's API for this HTTP status.
#[pyfunction]
pub(crate) fn anthropic_error_type(status: u16) -> &'static str {
    fairlead_dialect::anthropic_type(status)
}

/// The scopes of keys: `scope`, `summary`, `is_own`, and `routes` as pairs of method and path. Management scopes are
/// not included.
#[pyfunction]
pub(crate) fn key_scopes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    SCOPES
        .iter()
        .map(|scope| {
            let entry = PyDict::new(py);
            entry.set_item("scope", scope.name)?;
            entry.set_item("summary", scope.summary)?;
            entry.set_item("is_own", scope.is_own)?;
            entry.set_item("routes", scope.routes.to_vec())?;
            Ok(entry)
        })
        .collect()
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Public => "public",
        Tier::Inference => "inference",
        Tier::Management => "management",
        Tier::Admin => "admin",
        Tier::Session => "session",
        Tier::Account => "account",
        Tier::Key => "key",
        Tier::Delegated => "delegated",
    }
}

fn surface(surface: Surface) -> &'static str {
    match surface {
        Surface::OpenAi => "openai",
        Surface::Anthropic => "anthropic",
        Surface::Gemini => "gemini",
        Surface::Ollama => "ollama",
        Surface::Management => "management",
        Surface::Scraping => "scraping",
        Surface::OAuth => "oauth",
        Surface::Quota => "quota",
    }
}

/// Every error kind: `kind`, `status`, `type`, `summary`.
#[pyfunction]
pub(crate) fn error_kinds(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    ErrorKind::ALL
        .iter()
        .map(|kind| {
            let entry = PyDict::new(py);
            entry.set_item("kind", kind.code())?;
            entry.set_item("status", kind.status())?;
            entry.set_item("type", kind.wire_type())?;
            entry.set_item("summary", kind.summary())?;
            Ok(entry)
        })
        .collect()
}

/// The start and end, in Unix milliseconds, of the `day`, `week` or `month` window that contains `now_ms`. Windows
/// begin at `reset_minute` of their first day, in the zone with this IANA name.
#[pyfunction]
#[pyo3(signature = (period, reset_minute, now_ms, zone = "UTC"))]
pub(crate) fn limit_window(period: &str, reset_minute: u16, now_ms: u64, zone: &str) -> PyResult<(u64, u64)> {
    let period = match period {
        "day" => LimitPeriod::Day(reset_minute),
        "week" => LimitPeriod::Week(reset_minute),
        "month" => LimitPeriod::Month(reset_minute),
        _ => return Err(PyValueError::new_err("a period is `day`, `week` or `month`")),
    };
    let window = period.window(&Zone::from(zone.to_owned()), now_ms);
    Ok((window.starts_ms, window.ends_ms))
}

/// Encrypts with AES-256-GCM. The record's id is associated data.
#[pyfunction]
pub(crate) fn seal<'py>(
    py: Python<'py>,
    key: &[u8],
    record_id: &str,
    plaintext: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let sealed = sealer(key)?.seal(record_id, plaintext).map_err(|error| PyOSError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &sealed))
}

/// Decrypts the output of `seal`. Raises `ValueError` if that fails.
#[pyfunction]
pub(crate) fn unseal<'py>(
    py: Python<'py>,
    key: &[u8],
    record_id: &str,
    sealed: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let plain = sealer(key)?.open(record_id, sealed).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &plain))
}

fn sealer(key: &[u8]) -> PyResult<Sealer> {
    Sealer::new(key).ok_or_else(|| PyValueError::new_err("the key must have 32 bytes"))
}

/// Generates an API key. Returns the key and its hash.
#[pyfunction]
pub(crate) fn new_key() -> PyResult<(String, String)> {
    let key = generate_key().map_err(|error| PyOSError::new_err(error.to_string()))?;
    let hash = SecretHash::of(key.as_bytes()).to_hex();
    Ok((key, hash))
}

/// The SHA-256 of a random secret, in lower-case hexadecimal.
#[pyfunction]
pub(crate) fn hash_secret(text: &str) -> String {
    SecretHash::of(text.as_bytes()).to_hex()
}

/// Every guardrail with its priority, in the order in which they run.
#[pyfunction]
pub(crate) fn guardrails() -> Vec<(&'static str, u32)> {
    Guardrail::ALL.iter().map(|guardrail| (guardrail.name(), guardrail.priority())).collect()
}

/// Guardrail and kind.
type FindingOf = (&'static str, &'static str);

/// The findings of the guardrails in the texts of a JSON body, and the redacted body.
#[pyfunction]
pub(crate) fn judge_guardrails<'py>(
    py: Python<'py>,
    body: &[u8],
    actions: &[u8],
    disabled: &Bound<'py, PyList>,
) -> PyResult<(Vec<FindingOf>, Option<Bound<'py, PyBytes>>)> {
    let actions = Actions::parse(actions).ok_or_else(|| PyValueError::new_err("not a set of actions"))?;
    let disabled: Vec<String> = disabled.extract()?;
    let disabled = Disabled::parse(&disabled.join(","));
    let judged = guardrail::judge_body(body, actions.without(disabled));
    let found = judged.findings.iter().map(|finding| (finding.guardrail.name(), finding.kind)).collect();
    Ok((found, judged.body.map(|body| PyBytes::new(py, &body))))
}

/// The headers that sign a request to AWS or a compatible service. `keys` is JSON with `access_key_id`,
/// `secret_access_key` and an optional `session_token`.
#[pyfunction]
#[pyo3(signature = (keys, region, service, method, host, path, query, unix_s, body = None))]
#[expect(clippy::too_many_arguments, reason = "one for each part of a request and of a signature's scope")]
pub(crate) fn sign_aws(
    py: Python<'_>,
    keys: &[u8],
    region: String,
    service: String,
    method: &str,
    host: &str,
    path: &str,
    query: &str,
    unix_s: i64,
    body: Option<&[u8]>,
) -> PyResult<Vec<(&'static str, String)>> {
    let keys = aws::Keys::parse(keys).ok_or_else(|| PyValueError::new_err("not a pair of keys"))?;
    let body_hash = py.detach(|| SecretHash::of(body.unwrap_or_default()).0);
    let request = aws::Unsigned { method, host, path, query, body_hash };
    Ok(aws::sign(&keys, &aws::SigningScope { region, service }, request, unix_s))
}

/// The signed assertion of a Google service account, to be exchanged for an access token. `account` is the JSON of the
/// key file.
#[pyfunction]
pub(crate) fn google_assertion(account: &[u8], unix_s: i64) -> PyResult<String> {
    let account = ServiceAccount::parse(account)
        .ok_or_else(|| PyValueError::new_err("it is not the key file of a service account"))?;
    account.assertion(unix_s).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Why a text is not a valid pattern for tool names; `None` if it is valid. Uses the relay's rules.
#[pyfunction]
pub(crate) fn pattern_fault(pattern: &str) -> Option<String> {
    fairlead_core::strategy::pattern_fault(pattern)
}

/// The compiled regular expressions by which a crawl or map selects addresses.
#[pyclass(frozen, name = "AddressPatterns", module = "fairlead._core")]
pub(crate) struct PyAddressPatterns(AddressPatterns);

#[pymethods]
impl PyAddressPatterns {
    /// Raises `ValueError` with the kind of fault (`unreadable`, `too_large`, `too_large_together`) and the number of
    /// the pattern, counted through the lists in order.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // pyo3 passes lists by value
    fn new(
        include_paths: Vec<String>,
        exclude_paths: Vec<String>,
        include: Vec<String>,
        exclude: Vec<String>,
    ) -> PyResult<Self> {
        let lists = PatternLists {
            include_paths: &include_paths,
            exclude_paths: &exclude_paths,
            include: &include,
            exclude: &exclude,
        };
        AddressPatterns::new(lists).map(Self).map_err(|fault| match fault {
            PatternFault::Unreadable(number) => PyValueError::new_err(("unreadable", number)),
            PatternFault::TooLarge(number) => PyValueError::new_err(("too_large", number)),
            PatternFault::TooLargeTogether => PyValueError::new_err(("too_large_together", 0)),
        })
    }

    /// Whether the address with this path is accepted.
    fn accepts(&self, address: &str, path: &str) -> bool {
        self.0.accepts(address, path)
    }
}

/// Whether the gateway may connect to an address. `policy` is `operator` or `public`. `networks` lists private networks
/// that are allowed.
#[pyfunction]
#[pyo3(signature = (address, policy, networks = ""))]
pub(crate) fn address_allowed(address: &str, policy: &str, networks: &str) -> PyResult<bool> {
    let policy = EgressPolicy::from_name(policy)
        .ok_or_else(|| PyValueError::new_err("policy must be 'operator' or 'public'"))?;
    let address: IpAddr = address.parse().map_err(|_| PyValueError::new_err("not an IP address"))?;
    let networks = Networks::parse(networks).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(policy.allows_with(address, &networks))
}

/// The name, the optional file name and the content of a form part, as the relay reads them.
type PartOf<'py> = (String, Option<String>, Bound<'py, PyBytes>);

/// Reads a form into its parts ([`PartOf`]) with the relay's reader, against which Python's form readers are tested.
/// Raises `ValueError` if the body is not a form.
#[pyfunction]
pub(crate) fn read_form<'py>(py: Python<'py>, content_type: &str, body: &[u8]) -> PyResult<Vec<PartOf<'py>>> {
    let boundary = multipart::boundary_of(content_type).ok_or_else(|| PyValueError::new_err("there is no boundary"))?;
    let mut reader = multipart::Reader::new(boundary);
    let form = reader.push(body).and_then(|()| reader.finish());
    let form = form.map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    let content = |start: u64, end: u64| body.get(start as usize..end as usize).unwrap_or_default();
    let parts = form.parts.into_iter();
    Ok(parts.map(|part| (part.name, part.file_name, PyBytes::new(py, content(part.start, part.end)))).collect())
}

/// The canonical name of a model, without Google's folder. Raises `ValueError` with the rule that a spelling breaks.
#[pyfunction]
pub(crate) fn canonical_model(name: &str) -> PyResult<String> {
    let name = model_name::canonical(name).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    Ok(name.into_owned())
}

/// A provider's name of a model, without Google's folder.
#[pyfunction]
pub(crate) fn model_without_folder(model: &str) -> String {
    model_name::without_folder(model).to_owned()
}

/// A model's percent-encoded path below the base URL of a provider whose addresses contain the model. Raises
/// `ValueError` if it has none.
#[pyfunction]
pub(crate) fn model_address(model: &str) -> PyResult<String> {
    model_name::address(model).map_err(|fault| PyValueError::new_err(fault.to_string()))
}

/// Whether a pattern of a key matches a model. A block ignores case, an allowance does not.
#[pyfunction]
pub(crate) fn model_is_named(pattern: &str, model: &str, any_case: bool) -> bool {
    model_name::is_named(pattern, model, if any_case { Case::Ignored } else { Case::Exact })
}

/// Whether a key with this `accessSchedule` (JSON text) may be used at a time. Raises `ValueError` if the schedule is
/// invalid.
#[pyfunction]
pub(crate) fn is_schedule_open(schedule: &str, unix_ms: u64) -> PyResult<bool> {
    let schedule: Schedule =
        serde_json::from_str(schedule).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    Ok(schedule.is_open(unix_ms))
}

/// Whether a key with this `ipAllowlist` may be used from an address. Text that is not an address stands for this
/// machine. Raises `ValueError` with the entry of the list that is not a network.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a list by value")]
pub(crate) fn is_address_listed(allowlist: Vec<String>, address: &str) -> PyResult<bool> {
    let allowlist = AddressSet::parse(&allowlist).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    Ok(policy::is_listed(&allowlist, address.parse().ok()))
}

/// Generates a secret for signing webhooks.
#[pyfunction]
pub(crate) fn new_webhook_secret() -> PyResult<String> {
    signature::new_secret().map_err(|error| PyOSError::new_err(error.to_string()))
}

/// The value of `webhook-signature`: one signature for each secret.
#[pyfunction]
pub(crate) fn sign_webhook(secrets: Vec<String>, message_id: &str, timestamp_s: i64, body: &[u8]) -> PyResult<String> {
    signature::sign(&signing(secrets)?, message_id, timestamp_s, body)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The value of `webhook-signature` for a listener without a secret: a token signed with an RSA key.
#[pyfunction]
pub(crate) fn sign_webhook_token(
    key: String,
    key_id: &str,
    issuer: &str,
    audience: &str,
    message_id: &str,
    timestamp_s: i64,
    body: &[u8],
) -> PyResult<String> {
    let token = signature::Token { key: &Secret::from(key), key_id, issuer, audience };
    signature::sign_token(&token, message_id, timestamp_s, body)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns if one of the signatures matches one of the secrets. Raises `ValueError` with the reason otherwise.
#[pyfunction]
#[pyo3(signature = (secrets, message_id, timestamp, signature, body, now_s, tolerance_s = 300))]
pub(crate) fn verify_webhook(
    secrets: Vec<String>,
    message_id: &str,
    timestamp: &str,
    signature: &str,
    body: &[u8],
    now_s: i64,
    tolerance_s: i64,
) -> PyResult<()> {
    let delivery = signature::Delivery { id: message_id, timestamp, signatures: signature, body };
    signature::verify(&signing(secrets)?, &delivery, now_s, tolerance_s)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

fn signing(secrets: Vec<String>) -> PyResult<Vec<SigningSecret>> {
    secrets
        .into_iter()
        .map(|text| SigningSecret::parse(&text).map_err(|error| PyValueError::new_err(error.to_string())))
        .collect()
}

/// The package's version.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The page without tags that are nested deeper than in any real page. Most pages are unchanged.
#[pyfunction]
pub(crate) fn flattened<'py>(py: Python<'py>, html: Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
    let text = html.to_str()?;
    let flat = match py.detach(|| fairlead_page::flattened(text)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(flat) => Some(flat),
    };
    Ok(flat.map_or(html, |flat| PyString::new(py, &flat)))
}

/// The content of a page, as JSON with `content`, `links` and the requested lists. `form` is `html`, `markdown`, `text`
/// or empty. Releases the GIL.
#[pyfunction]
pub(crate) fn read_page<'py>(
    py: Python<'py>,
    html: &str,
    base: &str,
    form: &str,
    only_main_content: bool,
    fit: bool,
    lists: &Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyBytes>> {
    let lists: Vec<String> = lists.extract()?;
    let form = match form {
        "html" => Form::Html,
        "markdown" => Form::Markdown,
        "text" => Form::Text,
        "" => Form::Nothing,
        _ => return Err(PyValueError::new_err("not a form of content")),
    };
    let wants = |name: &str| lists.iter().any(|each| each == name);
    let want = ReadOptions {
        form,
        only_main_content,
        fit,
        tables: wants("tables"),
        code: wants("code"),
        images: wants("images"),
    };
    let page = py.detach(|| serde_json::to_vec(&fairlead_page::read(html, base, want)));
    Ok(PyBytes::new(py, &page.map_err(|error| PyValueError::new_err(error.to_string()))?))
}
