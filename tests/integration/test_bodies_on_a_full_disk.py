"""A disk that fills while bodies are kept: calls are answered, what is not kept is counted and shown, and keeping goes
on by itself once there is room.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.namespace import namespace_works

pytestmark = pytest.mark.slow

# The last 256 MiB of a disk take no bodies.
PROGRAM = """
import contextlib, json, os, subprocess, sys
from pathlib import Path

import httpx

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import start_gateway
from tests.support.prometheus import read_metrics
from tests.support.upstream import Upstream

MIB = 1024 * 1024
folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "none", str(folder)], check=True)
filler = folder / "filler"

def fill(but):
    free = os.statvfs(folder)
    left = free.f_bavail * free.f_frsize - but
    # The last bytes go to whoever is first.
    with contextlib.suppress(OSError), filler.open("ab", buffering=0) as file:
        while left > 0:
            left -= file.write(bytes(min(left, MIB)))

def lost(gateway):
    told = read_metrics(httpx.get(f"{gateway.url}/metrics", trust_env=False).text)
    return told["fairlead_bodies_lost_total"].value() if "fairlead_bodies_lost_total" in told else 0

report = {"full": [], "kept when full": []}
with Upstream() as upstream, start_gateway(folder) as gateway:
    lane = gateway.add_lane(upstream)
    key = gateway.create_key(captureBodies=True)["key"]
    loud = gateway.client(headers={"Authorization": f"Bearer {key}"})

    def call():
        answer = loud.post(CHAT, json=lane.body())
        return answer.status_code, answer.headers["x-gateway-request-id"]

    def is_kept(request):
        return gateway.admin.get(f"/api/usage/logs/{request}/body").status_code == 200

    status, request = call()
    eventually(lambda: is_kept(request), "kept while there is room", within_s=15)
    fill(100 * MIB)
    def fails():
        status, request = call()
        report["full"].append(status)
        report["request"] = request
        return lost(gateway) > 0
    eventually(fails, "a loss is counted", within_s=20, every_s=0.5)
    report["lost"] = lost(gateway)
    report["record"] = gateway.shown_record(report["request"])["hasBodies"]
    report["kept when full"] = is_kept(report["request"])
    report["left behind"] = [path.name for path in (gateway.data_dir / "spool" / "bodies").glob("*.new")]
    fill(0)
    report["to the last byte"] = call()[0]
    filler.unlink()
    later = []
    def works_again():
        status, request = call()
        later.append(request)
        return status == 200 and any(map(is_kept, later[-5:]))
    eventually(works_again, "kept again", within_s=30, every_s=1)
    report["told"] = gateway.log_path.read_text().count("bodies of requests are not kept")
print(json.dumps(report))
"""


@pytest.mark.skipif(
    not namespace_works() or shutil.which("mount") is None,
    reason="needs unshare with a user namespace, and mount",
)
def test_a_full_disk_costs_bodies_and_no_call(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            "unshare",
            "-rm",
            "--propagation",
            "private",
            sys.executable,
            "-c",
            PROGRAM,
            str(tmp_path),
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    report: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    assert set(report["full"]) == {200}, "a call is answered whatever becomes of its bodies"
    assert report["to the last byte"] == 200
    assert report["lost"] >= 1
    assert (report["record"], report["kept when full"], report["left behind"]) == (False, False, [])
    assert report["told"] == 1, "once a minute, not for every call"
