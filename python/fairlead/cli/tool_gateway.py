"""The gateway that a coding tool is pointed at: the running instance on this machine, or a remote one by its key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.failure import CommandFailed

if TYPE_CHECKING:
    from fairlead.coding_tools.filling import GatewayTarget

_TIMEOUT_S: Final = 60.0
_MOST_MODELS: Final = 500
"""How many models are written into a tool's file at most."""


@dataclass(frozen=True, slots=True)
class GatewayChoice:
    """The gateway in the options of a command."""

    remote: str | None
    api_key: str | None
    port: int | None
    url: str | None
    data_dir: Path
    key_source: str | None = None
    """The option or variable that `api_key` comes from."""


@dataclass(frozen=True, slots=True)
class ToolGateway:
    """A gateway with its live models. `key` is None where a key would have to be made first."""

    url: str
    models: list[str]
    key: str | None
    choice: GatewayChoice

    def target(self, model: str) -> GatewayTarget:
        """The values for a tool's files."""
        from fairlead.coding_tools.filling import MODEL_NAME, GatewayTarget

        if not MODEL_NAME.fullmatch(model):
            raise CommandFailed(f"--model: `{model}` has a character that files cannot hold.")
        names = [name for name in self.models if MODEL_NAME.fullmatch(name)][:_MOST_MODELS]
        return GatewayTarget(self.url, self.key or "", model, tuple(dict.fromkeys([model, *names])))

    def with_new_key(self, name: str) -> tuple[ToolGateway, str | None]:
        """With a key: the given one, or a new one with this name and the id by which it is revoked."""
        from fairlead.cli.instance import Instance

        if self.key is not None:
            return self, None
        with Instance(self.choice.url or self.url, self.choice.data_dir) as instance:
            made = instance.post("/api/keys", {"name": name})
        return replace(self, key=made["key"]), made["id"]

    @contextmanager
    def with_run_key(self, tool: str) -> Iterator[ToolGateway]:
        """With a key that is valid while the tool runs: the given one, or the key `<tool> (run)`.

        That key is switched off afterwards and not deleted, so that logs and costs name it, and is given a new text for
        the next run. Where it is in use another one is created.
        """
        from fairlead.cli.instance import Instance

        if self.key is not None:
            yield self
            return
        name = f"{tool} (run)"
        where = self.choice.url or self.url
        with Instance(where, self.choice.data_dir) as instance, _alone(self.choice.data_dir):
            keys = instance.list_all("/api/keys", "keys")
            idle = (each for each in keys if each["name"] == name and not each["isActive"])
            if (found := next(idle, None)) is None:
                made = instance.post("/api/keys", {"name": name})
            else:
                made = instance.post(f"/api/keys/{found['id']}/regenerate")
                instance.patch(f"/api/keys/{found['id']}", {"isActive": True})
        try:
            yield replace(self, key=made["key"])
        finally:
            with Instance(where, self.choice.data_dir) as instance:
                instance.patch(f"/api/keys/{made['id']}", {"isActive": False})

    def revoke(self, key_id: str) -> None:
        """Revokes a key that was made."""
        from fairlead.cli.instance import Instance

        with Instance(self.choice.url or self.url, self.choice.data_dir) as instance:
            instance.delete(f"/api/keys/{key_id}")

    def try_call(self, model: str) -> dict[str, Any]:
        """One real call of the model by the tool's key: who answered, and its cost. Raises `CommandFailed`."""
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "Say OK."}],
            "max_tokens": 16,
        }
        answer = _send(self.url, "POST", "/v1/chat/completions", self.key, json=body)
        head = answer.headers
        return {
            "model": head.get("x-gateway-model"),
            "provider": head.get("x-gateway-provider"),
            "costUsd": None
            if "x-gateway-unpriced" in head
            else head.get("x-gateway-response-cost"),
            "latencyMs": head.get("x-gateway-latency-ms"),
        }


@contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    """One command at a time: two that start a tool at once never take the same key."""
    import fcntl
    import os

    folder = data_dir.expanduser() / "coding-tools"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock_fd = os.open(folder / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock_fd)


def own_url(choice: GatewayChoice) -> str | None:
    """The address on this machine that the options name, if they name one."""
    return choice.url or (f"http://127.0.0.1:{choice.port}" if choice.port else None)


def open_gateway(choice: GatewayChoice) -> ToolGateway:
    """The gateway and the models that it serves now. Raises `CommandFailed` where nothing answers."""
    from fairlead.cli.instance import Instance

    if choice.remote is not None:
        if choice.api_key is None:
            raise CommandFailed("--remote needs --api-key: a key of that gateway.")
        url = _remote_url(choice.remote)
        listed = _send(url, "GET", "/v1/models", choice.api_key).json()
        models = [str(each["id"]) for each in listed.get("data", [])]
        return ToolGateway(url, models, choice.api_key, choice)
    with Instance(own_url(choice), choice.data_dir) as instance:
        listed = instance.get("/api/cli-tools")
        return ToolGateway(instance.url, listed["models"], choice.api_key, choice)


def _remote_url(text: str) -> str:
    from fairlead.net.web_address import service_address

    try:
        return service_address(text).removesuffix("/v1")
    except ValueError as error:
        raise CommandFailed(f"--remote {error}.") from None


def _send(url: str, method: str, path: str, key: str | None, **sent: Any) -> Any:
    import httpx

    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.request(method, url + path, headers=headers, timeout=_TIMEOUT_S, **sent)
    except httpx.HTTPError as error:
        raise CommandFailed(f"{url} does not answer ({type(error).__name__}).") from None
    if answer.is_success:
        return answer
    try:
        message = answer.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = f"status {answer.status_code}"
    raise CommandFailed(f"{url} refused the call: {message}")
