"""The action of each guardrail, from the operator's settings, as the snapshot holds it."""

from __future__ import annotations

from fairlead.store.operator_settings import OperatorSettings


def guardrail_actions(settings: OperatorSettings) -> dict[str, dict[str, str]]:
    """The actions on requests and on answers, each by guardrail."""
    return {
        "request": {
            "pii_masker": settings.guardrail_pii_masker,
            "prompt_injection": settings.guardrail_prompt_injection,
            "credential_masker": settings.guardrail_credential_masker,
        },
        "answer": {
            "pii_masker": settings.guardrail_answer_pii_masker,
            "credential_masker": settings.guardrail_answer_credential_masker,
        },
    }
