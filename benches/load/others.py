"""What fairlead is held against: the upstream itself, nginx, and other gateways."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from target import Target, Unavailable, free_port, start, wait_for_line

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Start scripts that are no gateway for OpenAI chat completions, or that the run starts itself.
NOT_COMPARED = {
    "mock": "the run has its own upstream",
    "nginx": "the run starts nginx itself",
    "ccr": "takes Anthropic messages only",
}


def start_upstream(folder: Path, chunks: int) -> Target:
    """Builds and starts `upstream/`; also the line of the table that has no gateway."""
    build = ROOT / "target" / "upstream"
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", str(build)]
    subprocess.run([*command, "--manifest-path", str(HERE / "upstream" / "Cargo.toml")], check=True)
    port, log = free_port(), folder / "upstream.log"
    process = start([str(build / "release" / "bench-upstream"), str(port), str(chunks)], log=log)
    wait_for_line(process, log, "ready", 10)
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return Target("direct", "0.1.0", url, "mock", process.pid, process=process)


def start_nginx(upstream: str, folder: Path) -> Target:
    """One worker, upstream connections kept alive, nothing buffered, nothing parsed."""
    binary = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if binary is None:
        raise Unavailable("nginx is not installed")
    told = subprocess.run([binary, "-v"], capture_output=True, text=True, check=True).stderr
    port, home = free_port(), folder / "nginx"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    conf = home / "nginx.conf"
    conf.write_text(
        (HERE / "nginx.conf")
        .read_text("utf-8")
        .replace("@HOME@", str(home))
        .replace("@PORT@", str(port))
        .replace("@UPSTREAM@", upstream.removeprefix("http://"))
    )
    log = folder / "nginx.log"
    process = start([binary, "-e", str(home / "error.log"), "-c", str(conf)], log=log)
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    version = told.strip().rpartition("/")[2]
    return Target("nginx", version, url, "mock", process.pid, process=process)


def peer_names(scripts: Path) -> list[str]:
    """The gateways that the folder has start scripts for."""
    names = [file.stem.removeprefix("start-") for file in sorted(scripts.glob("start-*.sh"))]
    return [name for name in names if name not in NOT_COMPARED]


def start_peer(name: str, scripts: Path, upstream: str, folder: Path) -> Target:
    """Installs (once, in the user's cache) and starts another gateway by its script."""
    script = scripts / f"start-{name}.sh"
    if not script.exists():
        raise Unavailable("there is no start script for it")
    log, home = (
        folder / f"{name}.log",
        Path(os.environ.get("PEERS_HOME", Path.home() / ".cache" / "gateway-peers")),
    )
    env = {"UPSTREAM": upstream, "PEERS_HOME": str(home), "WORKERS": "1"}
    process = start(["bash", str(script)], log=log, env=env)
    target = Target(name, "", "", "", process.pid, process=process)
    try:
        line = wait_for_line(process, log, "ready ", 900)
        facts = (home / "run" / f"{line.split()[1]}.env").read_text("utf-8").splitlines()
    except (Unavailable, OSError) as error:
        target.stop()
        # A kept result names no place of this machine.
        told = str(error).replace(str(scripts), "peers").replace(str(Path.home()), "~")
        raise Unavailable(told) from error
    for fact in facts:
        name_of, _, value = fact.partition("=")
        match name_of:
            case "URL":
                target.url = value
            case "MODEL":
                target.model = value
            case "PID":
                target.pid = int(value)
            case "VERSION":
                target.version = value
            case "HEADER":
                header, _, content = value.partition(": ")
                target.headers[header] = content
    return target
