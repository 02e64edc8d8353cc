"""The table `agent_skills`. Every function runs inside `state.read` or the writer."""

from __future__ import annotations

from typing import Final

from fairlead.agents.skill import Skill
from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.store.file import Connection
from fairlead.store.table import Table

SKILLS_MAX: Final = 1000

_SKILLS: Final = Table("agent_skills", Skill)


def insert_skill(con: Connection, skill: Skill) -> None:
    """Adds a skill; `Conflict` when its path is taken."""
    if count_skills(con) >= SKILLS_MAX:
        raise Conflict(f"There are {SKILLS_MAX} agent skills, the limit: delete one first.")
    check_place(con, skill)
    _SKILLS.insert(con, skill)


def update_skill(con: Connection, skill: Skill) -> None:
    """Replaces a skill's row; `Conflict` when its path is taken."""
    check_place(con, skill)
    _SKILLS.update(con, skill)


def delete_skill(con: Connection, skill_id: str) -> None:
    """Removes a skill with its tasks."""
    con.execute(
        "DELETE FROM agent_messages WHERE task_id IN "
        "(SELECT id FROM agent_tasks WHERE skill_id = ?)",
        [skill_id],
    )
    con.execute("DELETE FROM agent_tasks WHERE skill_id = ?", [skill_id])
    con.execute("DELETE FROM agent_skills WHERE id = ?", [skill_id])


def check_place(con: Connection, skill: Skill) -> None:
    """Checks the rules that involve other rows: limits, a free path, an existing key."""
    if not skill.slug:
        raise InvalidRequest(
            "name must have a letter or digit, for the agent's path.", param="name"
        )
    taken = con.execute(
        "SELECT name FROM agent_skills WHERE lower(slug) = lower(?) AND id <> ?",
        [skill.slug, skill.id],
    ).fetchone()
    if taken is not None:
        raise Conflict(
            f"The path /agents/{skill.slug} is taken by the agent `{taken[0]}`: choose another name.",
            param="name",
        )
    if skill.api_key_id is not None:
        check_key_id(con, skill.api_key_id)


def check_key_id(con: Connection, key_id: str) -> None:
    """Raises `InvalidRequest` when there is no such API key."""
    if con.execute("SELECT 1 FROM keys WHERE id = ?", [key_id]).fetchone() is None:
        raise InvalidRequest("apiKeyId: there is no API key with this id.", param="apiKeyId")


def find_skill(con: Connection, skill_id: str) -> Skill | None:
    """The skill with this id."""
    return _SKILLS.find(con, "id = ?", skill_id)


def keys_of_skills(con: Connection) -> dict[str, str]:
    """Maps each agent that has an API key to its id."""
    rows = con.execute(
        "SELECT id, api_key_id FROM agent_skills WHERE api_key_id IS NOT NULL"
    ).fetchall()
    return {str(skill_id): str(key_id) for skill_id, key_id in rows}


def find_skill_by_slug(con: Connection, slug: str) -> Skill | None:
    """The skill with this path segment."""
    return _SKILLS.find(con, "slug = ?", slug)


def found_skill(con: Connection, skill_id: str) -> Skill:
    """The skill with this id; raises `NotFound`."""
    skill = find_skill(con, skill_id)
    if skill is None:
        raise NotFound("There is no agent skill with this id.", param="id")
    return skill


def list_skills(con: Connection, limit: int, offset: int) -> list[Skill]:
    """A page of skills, oldest first."""
    return _SKILLS.select(con, "ORDER BY created_at_ms, id LIMIT ? OFFSET ?", limit, offset)


def count_skills(con: Connection) -> int:
    """The number of skills."""
    return _SKILLS.count(con)
