"""Where credentials of machines and clouds come from: each service on this machine, by the variables of its SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from fairlead.gateway.cloud_credentials import instance_role
from fairlead.gateway.cloud_credentials.fixed_address import FixedAddress
from fairlead.gateway.cloud_credentials.obtained import NotObtained, Obtained
from fairlead.gateway.cloud_credentials.sources import Source, obtain
from fairlead.moment import now_ms
from tests.support.upstream import RESET, Script, Seen, Upstream, reply

pytestmark = pytest.mark.anyio

KEYS = {
    "access_key_id": "ASIAEXAMPLE",
    "secret_access_key": "secret-canary",
    "session_token": "token-canary",
}
GIVEN = {
    "Code": "Success",
    "AccessKeyId": "ASIAEXAMPLE",
    "SecretAccessKey": "secret-canary",
    "Token": "token-canary",
    "Expiration": "2099-01-02T03:04:05Z",
}
ENDS_MS = 4_071_006_245_000
ARN = "arn:aws:iam::123456789012:role/bedrock"


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


def address(up: Upstream) -> str:
    return f"http://127.0.0.1:{up.port}"


async def refused(auth_type: str, environment: dict[str, str], **specific: str) -> str:
    with pytest.raises(NotObtained) as raised:
        await obtain(Source(auth_type, specific), environment)
    assert "canary" not in str(raised.value)
    return str(raised.value)


# ------------------------------------------------------------------------------- instance and container


class InstanceMetadata(Upstream):
    """Version 2 of EC2's instance metadata service: no answer without a token."""

    role = "my role"
    keys: dict[str, Any] = GIVEN

    def choose(self, seen: Seen) -> Script:
        if seen.method == "PUT" and seen.target == "/latest/api/token":
            assert seen.header("x-aws-ec2-metadata-token-ttl-seconds") == "21600"
            return reply(b"token-of-the-instance", content_type="text/plain")
        if seen.header("x-aws-ec2-metadata-token") != "token-of-the-instance":
            return reply({}, 401)
        roles = "/latest/meta-data/iam/security-credentials/"
        if seen.target == roles:
            return reply(self.role.encode(), 200 if self.role else 404, content_type="text/plain")
        return reply(self.keys) if seen.target == f"{roles}my-role" else reply({}, 404)


async def test_the_role_of_an_instance() -> None:
    with InstanceMetadata() as service:
        service.role = "my-role"
        environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": address(service)}
        found = await obtain(Source("aws-instance", {}), environment)
        assert found == Obtained(aws=dict(KEYS), expires_at_ms=ENDS_MS)
        assert [seen.method for seen in service.requests] == ["PUT", "GET", "GET"]

        service.keys = {"Code": "AssumeRoleUnauthorizedAccess"}
        assert "gave no keys" in await refused("aws-instance", environment)
        service.keys = {**GIVEN, "Expiration": "soon"}
        assert "expiry" in await refused("aws-instance", environment)
        service.role = ""
        assert await refused("aws-instance", environment) == "The instance has no role."


async def test_an_instance_without_the_service(up: Upstream) -> None:
    environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": address(up)}
    up.script(reply({}, 403))
    assert "answered 403" in await refused("aws-instance", environment)
    up.script([RESET])
    assert "cannot be reached" in await refused("aws-instance", environment)
    disabled = {**environment, "AWS_EC2_METADATA_DISABLED": "true"}
    assert "forbids" in await refused("aws-instance", disabled)
    mode = {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": "IPv5"}
    assert "IPv4 or IPv6" in await refused("aws-instance", mode)
    assert len(up.requests) == 2


async def test_the_client_of_one_address_reaches_no_other(up: Upstream) -> None:
    with Upstream() as other:
        up.script(reply({}, 302, [("Location", address(other))]))
        service = FixedAddress(instance_role.NAME, address(up))
        assert (await service.ask("/", {}))[0] == 302
        with pytest.raises(NotObtained, match="AddressForbidden"):
            await service.ask(f"{address(other)}/x", {})
        assert other.requests == []


async def test_an_answer_that_never_ends_is_refused(up: Upstream) -> None:
    up.script(reply(b"x" * 70_000, content_type="text/plain"))
    environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": address(up)}
    assert "too many bytes" in await refused("aws-instance", environment)


async def test_the_role_of_a_container(up: Upstream, tmp_path: Path) -> None:
    up.script(reply({**GIVEN, "RoleArn": ARN}))
    full = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address(up)}/v2/credentials?id=a"}
    environment = {**full, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer canary"}
    found = await obtain(Source("aws-container", {}), environment)
    assert (found.aws, found.expires_at_ms) == (KEYS, ENDS_MS)
    assert up.last.target == "/v2/credentials?id=a"
    assert up.last.header("authorization") == "Bearer canary"

    # The token of EKS is in a file, and rotated there.
    file = tmp_path / "token"
    file.write_text("second\n")
    environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(file)
    await obtain(Source("aws-container", {}), environment)
    assert up.last.header("authorization") == "second"
    file.unlink()
    assert "does not exist" in await refused("aws-container", environment)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "this is no such container"),
        ({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "evil"}, "must begin with"),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/x"}, "must be https"),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.169.254/x"}, "must be https"),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "file:///etc/passwd"}, "must be https"),
    ],
)
async def test_a_container_names_its_endpoint(environment: dict[str, str], words: str) -> None:
    assert words in await refused("aws-container", environment)


# ---------------------------------------------------------------------------------------- tokens of STS


def assumed(action: str) -> bytes:
    return (
        f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>'
        "<AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/x/y</Arn></AssumedRoleUser><Credentials>"
        "<AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>secret-canary</SecretAccessKey>"
        "<SessionToken>token-canary</SessionToken><Expiration>2099-01-02T03:04:05Z</Expiration>"
        f"</Credentials></{action}Result></{action}Response>"
    ).encode()


def sts(action: str) -> list[Any]:
    return reply(assumed(action), content_type="text/xml")


async def test_a_web_identity_is_exchanged(up: Upstream, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("jwt-canary\n")
    environment = {
        "AWS_ENDPOINT_URL_STS": address(up),
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ROLE_ARN": ARN,
        "AWS_ROLE_SESSION_NAME": "mine",
    }
    up.script(sts("AssumeRoleWithWebIdentity"))
    found = await obtain(Source("aws-web-identity", {"region": "eu-west-1"}), environment)
    assert found == Obtained(aws=dict(KEYS), expires_at_ms=ENDS_MS)
    assert (up.last.method, up.last.target) == ("POST", "/")
    assert up.last.header("authorization") is None
    assert parse_qs(up.last.body.decode()) == {
        "Action": ["AssumeRoleWithWebIdentity"],
        "Version": ["2011-06-15"],
        "RoleArn": [ARN],
        "RoleSessionName": ["mine"],
        "WebIdentityToken": ["jwt-canary"],
    }

    # The connection's role goes before the environment's, and the file is read again.
    token.write_text("rotated")
    other = ARN.replace("bedrock", "other")
    await obtain(Source("aws-web-identity", {"role_arn": other}), environment)
    asked = parse_qs(up.last.body.decode())
    assert (asked["RoleArn"], asked["WebIdentityToken"]) == ([other], ["rotated"])

    error = b"<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredTokenException</Code></Error></ErrorResponse>"
    up.script(reply(error, 400, content_type="text/xml"))
    assert "400 (ExpiredTokenException)" in await refused("aws-web-identity", environment)
    up.script(reply(b"<html>", content_type="text/html"))
    assert "without AccessKeyId" in await refused("aws-web-identity", environment)


async def test_what_a_web_identity_needs(tmp_path: Path) -> None:
    assert "AWS_WEB_IDENTITY_TOKEN_FILE" in await refused("aws-web-identity", {})
    missing = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "none")}
    assert "roleArn" in await refused("aws-web-identity", missing)
    named = {**missing, "AWS_ROLE_ARN": ARN}
    assert "does not exist" in await refused("aws-web-identity", named)


# ------------------------------------------------------------------------------------------- shared files

CREDENTIALS = """
[default]
aws_access_key_id = AKIADEFAULT
aws_secret_access_key = default-canary

[work]
aws_access_key_id = AKIAWORK
aws_secret_access_key = work-canary
aws_session_token = session-canary
"""
CONFIG = f"""
[default]
region = eu-west-1
s3 =
    max_concurrent_requests = 20

[profile assumed]
role_arn = {ARN}
source_profile = work
role_session_name = somebody
external_id = outside

[profile on-instance]
role_arn = {ARN}
credential_source = Ec2InstanceMetadata

[profile circle]
role_arn = {ARN}
source_profile = circle-back

[profile circle-back]
role_arn = {ARN}
source_profile = circle

[profile lonely]
role_arn = {ARN}

[profile signed-on]
sso_start_url = https://example.com
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "credentials").write_text(CREDENTIALS)
    (tmp_path / "config").write_text(CONFIG)
    return {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }


@pytest.mark.parametrize(
    ("specific", "variable", "key_id", "token"),
    [
        ({}, {}, "AKIADEFAULT", None),
        ({}, {"AWS_PROFILE": "work"}, "AKIAWORK", "session-canary"),
        ({"aws_profile": "default"}, {"AWS_PROFILE": "work"}, "AKIADEFAULT", None),
    ],
)
async def test_a_profile_with_keys(
    files: dict[str, str],
    specific: dict[str, str],
    variable: dict[str, str],
    key_id: str,
    token: str | None,
) -> None:
    found = await obtain(Source("aws-profile", specific), files | variable)
    assert found.aws is not None
    assert (found.aws["access_key_id"], found.aws["session_token"]) == (key_id, token)
    assert found.expires_at_ms is None


async def test_a_profile_with_a_role(files: dict[str, str], up: Upstream) -> None:
    up.script(sts("AssumeRole"))
    environment = files | {"AWS_ENDPOINT_URL_STS": address(up)}
    specific = {"aws_profile": "assumed", "region": "eu-west-1"}
    found = await obtain(Source("aws-profile", specific), environment)
    assert found == Obtained(aws=dict(KEYS), expires_at_ms=ENDS_MS)
    assert parse_qs(up.last.body.decode()) == {
        "Action": ["AssumeRole"],
        "Version": ["2011-06-15"],
        "RoleArn": [ARN],
        "RoleSessionName": ["somebody"],
        "ExternalId": ["outside"],
    }
    signature = up.last.header("authorization") or ""
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=AKIAWORK/")
    assert "/eu-west-1/sts/aws4_request" in signature
    assert up.last.header("x-amz-security-token") == "session-canary"


async def test_a_profile_by_the_role_of_its_instance(files: dict[str, str], up: Upstream) -> None:
    up.script(sts("AssumeRole"))
    with InstanceMetadata() as service:
        service.role = "my-role"
        environment = files | {
            "AWS_ENDPOINT_URL_STS": address(up),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": address(service),
        }
        await obtain(Source("aws-profile", {"aws_profile": "on-instance"}), environment)
    assert "Credential=ASIAEXAMPLE/" in (up.last.header("authorization") or "")


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("none", "no profile `none`"),
        ("circle", "circle of source_profile"),
        ("lonely", "without a source_profile"),
        ("signed-on", "single sign-on"),
    ],
)
async def test_a_profile_that_gives_nothing(
    files: dict[str, str], profile: str, words: str
) -> None:
    assert words in await refused("aws-profile", files, aws_profile=profile)


async def test_shared_files_that_cannot_be_read(tmp_path: Path) -> None:
    absent = {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "a"),
        "AWS_CONFIG_FILE": str(tmp_path / "b"),
    }
    assert "no shared file" in await refused("aws-profile", absent)
    (tmp_path / "a").write_text("secret-canary without a section")
    assert "not in the format" in await refused("aws-profile", absent)


# ------------------------------------------------------------------------------------ Google and Microsoft


async def test_googles_metadata_server(up: Upstream) -> None:
    flavor = [("Metadata-Flavor", "Google")]
    granted = {"access_token": "ya29.canary", "expires_in": 1800, "token_type": "Bearer"}
    up.script(reply(granted, 200, flavor))
    environment = {"GCE_METADATA_HOST": f"127.0.0.1:{up.port}"}
    before = now_ms()
    found = await obtain(Source("google-metadata", {}), environment)
    assert found.token == "ya29.canary"
    assert found.expires_at_ms is not None
    assert before + 1_800_000 <= found.expires_at_ms <= now_ms() + 1_800_000
    assert up.last.header("metadata-flavor") == "Google"
    assert up.last.target.startswith(
        "/computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A%2F%2F"
    )

    for script, words in (
        (reply(granted), "is not Google's metadata server"),
        (reply({}, 404, flavor), "answered 404"),
        (reply({**granted, "expires_in": True}, 200, flavor), "without expires_in"),
        (reply({**granted, "access_token": "a b"}, 200, flavor), "no header can contain"),
        (reply(b"[]", 200, flavor), "without a JSON object"),
    ):
        up.script(script)
        assert words in await refused("google-metadata", environment)


async def test_an_application_of_entra(up: Upstream) -> None:
    app = {"tenant_id": "tenant", "client_id": "client", "client_secret": "app-canary"}
    up.script(reply({"access_token": "entra-canary", "expires_in": 3599}))
    environment = {"AZURE_AUTHORITY_HOST": f"{address(up)}/"}
    found = await obtain(Source("entra", {}, app), environment)
    assert found.token == "entra-canary"
    assert up.last.target == "/tenant/oauth2/v2.0/token"
    assert parse_qs(up.last.body.decode()) == {
        "grant_type": ["client_credentials"],
        "client_id": ["client"],
        "client_secret": ["app-canary"],
        "scope": ["https://cognitiveservices.azure.com/.default"],
    }
    up.script(reply({"error": "invalid_client", "error_description": "app-canary"}, 401))
    with pytest.raises(NotObtained, match="refused the application with 401") as raised:
        await obtain(Source("entra", {}, app), environment)
    assert "canary" not in str(raised.value)
    assert "canary" not in repr(Source("entra", {}, app))
    assert "canary" not in repr(found)
