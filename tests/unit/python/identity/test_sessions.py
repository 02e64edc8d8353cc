"""Expired sessions are swept, the local token is made once, and both are kept as hashes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fairlead.identity.local_token import local_token_hash, make_local_token
from fairlead.identity.sessions import (
    LIFETIME_S,
    compile_sessions,
    mint_session,
    open_session,
    sweep_sessions,
)
from fairlead.identity.users import ensure_owner
from fairlead.store.file import Connection


def test_sessions_expire_and_are_swept(con: Connection) -> None:
    session = mint_session()
    owner = ensure_owner(con)
    open_session(con, session, owner.id, replaced=None)
    [compiled] = compile_sessions(con)
    assert compiled["hash"] == session.hash == hashlib.sha256(session.token.encode()).hexdigest()
    assert compiled["user_id"] == owner.id
    assert compiled["manages"] is True
    expires_at_ms = compiled["expires_at_ms"]
    assert sweep_sessions(con, expires_at_ms - 1) == 0
    assert sweep_sessions(con, expires_at_ms) == 1
    assert compile_sessions(con) == []
    assert LIFETIME_S == 30 * 24 * 3600


def test_tokens_are_256_random_bits() -> None:
    tokens = {mint_session().token for _ in range(1000)}
    assert len(tokens) == 1000
    assert min(map(len, tokens)) >= 43


def test_the_local_token_is_made_once_and_private(tmp_path: Path) -> None:
    token = make_local_token(tmp_path)
    assert make_local_token(tmp_path) == token
    path = tmp_path / "cli-token"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().strip() == token
    assert local_token_hash(tmp_path) == hashlib.sha256(token.encode()).hexdigest()
