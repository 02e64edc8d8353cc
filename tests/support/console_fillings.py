"""How each form of the console is filled right, by the page and the act of the form.

What a form has already, as the record that it changes, stays as it is.
"""

from __future__ import annotations

from typing import Final

from tests.support.owner import OWNER_PASSWORD

LAST: Final = "the last choice of the list"
STANDIN: Final = "the address of the stand-in"
LINE: Final = (
    '{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": '
    '{"model": "demo/echo", "messages": [{"role": "user", "content": "In a batch"}]}}'
)
_TOOL: Final = {"model": "demo/echo", "apiKey": "sk-fl-of-a-coding-tool"}
_AGENT: Final = {"description": "It reads bills.", "prompt": "Read the bill."}
# What is said of shadows is read where there are some.
_SHADOW: Final = {"config.shadowRouting.targets": "demo/standin"}
_ADDRESS: Final = "https://93.184.215.14/hook"

FILLINGS: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("account", "make"): {"name": "editor"},
    ("account/password", "change"): {
        "currentPassword": OWNER_PASSWORD,
        "newPassword": OWNER_PASSWORD,
    },
    ("account/second-factor", "begin"): {"currentPassword": OWNER_PASSWORD},
    ("agent-skills/new", "create"): {"name": "Bills", **_AGENT},
    ("agent-skills/{skill_id}", "change"): _AGENT,
    ("backups", "schedule"): {"backupEveryHours": "12"},
    ("batches/new", "create"): {"input_file_id": LAST},
    ("batches/new-file", "upload"): {"name": "more.jsonl", "content": LINE},
    ("cli-agents/{tool_id}", "preview"): _TOOL,
    ("cli-agents/{tool_id}", "apply"): _TOOL,
    ("cli-code/{tool_id}", "preview"): _TOOL,
    ("cli-code/{tool_id}", "apply"): _TOOL,
    ("cli-code/mitm/{tool_id}", "alias"): {"aliases": "gemini-3-pro = demo/echo"},
    ("combos/new", "create"): {"name": "second", "models.0.model": "demo/echo", **_SHADOW},
    ("combos/simulate", "simulate"): {"comboName": "either"},
    ("combos/{combo_id}", "change"): {"description": "One of two.", **_SHADOW},
    ("context", "change"): {"automaticTokens": "9000"},
    ("context/pipelines/new", "create"): {"name": "short", "stages": "lite"},
    ("context/pipelines/{pipeline_id}", "change"): {"description": "Of ours."},
    ("context/preview", "preview"): {"text": "A long, long story."},
    ("groups/new", "create"): {"name": "sales"},
    ("groups/{group_id}", "add"): {"email": "second@example.org"},
    ("groups/{group_id}", "change"): {"tags": "lab"},
    ("groups/{group_id}", "delete"): {},
    ("guardrails", "try"): {"input": "Write to ada@example.org."},
    ("guardrails", "change"): {"guardrailPiiMasker": LAST},
    ("identity/new", "create"): {
        "name": "Mara",
        "email": "mara@example.org",
        "password": OWNER_PASSWORD,
        "currentPassword": OWNER_PASSWORD,
    },
    ("identity/{user_id}", "change"): {"name": "Second", "currentPassword": OWNER_PASSWORD},
    ("keys/new", "create"): {"name": "support"},
    ("keys/{key_id}", "change"): {"tags": "lab"},
    ("models/model", "price"): {"price.input": "3"},
    ("models/model", "facts"): {"facts.userMost": "32"},
    ("models/model", "settings"): {"modelName": "Four o"},
    ("models/names", "alias"): {"alias": "smart", "model": "demo/echo"},
    ("models/names", "map"): {"pattern": "demo/small*", "comboId": LAST},
    ("models/mappings/{mapping_id}", "change"): {"description": "For a while."},
    ("playground", "ask"): {"model": "demo/echo", "prompt": "Ahoy"},
    ("providers/new-endpoint", "create"): {
        "name": "Our lab",
        "prefix": "lab",
        "baseUrl": "http://127.0.0.1:9/v1",
    },
    ("providers/endpoints/{node_id}", "change"): {"name": "Stand-in of ours"},
    ("providers/new/{provider}", "create"): {
        "name": "main",
        "apiKey": "sk-of-the-main-account",
        "providerSpecificData.baseUrl": STANDIN,
    },
    ("providers/{connection_id}", "change"): {"displayName": "The line"},
    ("scraping", "try"): {"url": f"{STANDIN}/models"},
    ("scraping/crawls/new", "crawl"): {"url": STANDIN, "limit": "1"},
    ("settings", "change"): {"webhookHistoryDays": "8"},
    ("settings/mail", "change"): {
        "host": "127.0.0.1",
        "port": "2525",
        "sender": "fairlead@example.com",
        "recipients": "ops@example.com",
    },
    ("tokens", "create"): {"name": "deployment"},
    ("webhooks/new", "create"): {"name": "on call too", "url": _ADDRESS, "events:*": "on"},
    ("webhooks/{webhook_id}", "change"): {"name": "on call first"},
    ("webhooks/{webhook_id}", "replay"): {"from": "2026-01-02T03:04"},
    ("webhooks/{webhook_id}/secret", "rotate"): {"keepPreviousHours": "1"},
}

# What needs more than a page and a filling, and the test that does it.
ELSEWHERE: Final[dict[tuple[str, str], str]] = {
    ("account", "withdraw"): "test_an_approval_is_taken_back_on_the_page_of_the_account",
    ("account/second-factor", "confirm"): "test_the_second_factor_is_turned_on_and_off_on_a_page",
    ("account/second-factor", "renew"): "test_the_second_factor_is_turned_on_and_off_on_a_page",
    ("account/second-factor", "disable"): "test_the_second_factor_is_turned_on_and_off_on_a_page",
    ("batches/{batch_id}", "cancel"): "test_a_file_is_uploaded_run_downloaded_and_deleted",
    **dict.fromkeys(
        (("my-keys", act) for act in ("create", "revoke", "regenerate")),
        "test_a_member_makes_rotates_and_revokes_their_key_by_forms",
    ),
    ("scraping/crawls/{job_id}", "cancel"): "test_pages_are_tried_crawled_and_cancelled",
    ("scraping/sites", "run"): "test_the_console_reads_pages_crawls_and_runs_sites_for_a_key",
    ("scraping/sites", "delete"): "test_the_console_reads_pages_crawls_and_runs_sites_for_a_key",
    ("settings/mail", "test"): "test_mail_is_set_tried_and_taken_back",
    ("providers/new/{provider}", "sign_in"): "test_a_button_leads_to_the_provider",
    ("providers/{connection_id}", "sign_in"): "test_a_button_leads_to_the_provider",
    ("providers/{connection_id}", "usage"): "test_a_page_shows_what_was_told_and_what_is_unknown",
    ("providers/{connection_id}", "usage_key"): "test_an_administrators_key_is_set_and_forgotten",
}
