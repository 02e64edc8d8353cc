"""`fairlead doctor`: finds problems on this machine and at the gateway, and names the fixes."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from fairlead.cli.finding import Finding, Severity
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json
from fairlead.cli.progress import waiting

_MARKS: Final = {Severity.OK: "ok  ", Severity.WARNING: "warn", Severity.FAILURE: "FAIL"}


def doctor(
    providers: Annotated[
        bool, typer.Option("--providers/--no-providers", help="Test every provider connection too.")
    ] = True,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Find problems and show how to fix each. Exit code 1 if something does not work."""
    from fairlead.cli.gateway_checks import gateway_findings
    from fairlead.cli.instance import Instance
    from fairlead.cli.machine_checks import machine_findings

    findings: list[Finding] = []
    with Instance(url, data_dir) as instance, waiting("Looking"):
        if instance.address.is_local:
            findings += machine_findings(data_dir)
        findings += gateway_findings(instance, with_providers=providers)
    failed = [each for each in findings if each.severity is Severity.FAILURE]
    if as_json:
        show_json({"ok": not failed, "findings": [each.document() for each in findings]})
    else:
        for each in findings:
            print_message(f"{_MARKS[each.severity]}  {each.check}: {each.text}")
            if each.fix is not None:
                print_message(f"      fix: {each.fix}")
    if failed:
        raise typer.Exit(1)
