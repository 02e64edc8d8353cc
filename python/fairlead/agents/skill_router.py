"""`/api/agent-skills`: management of stored agents."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from fastapi import APIRouter

from fairlead.agents.generate import Generated, GenerateSkill, generate_skill
from fairlead.agents.runner import TaskRunner
from fairlead.agents.skill import DEFAULT_MODEL, NewSkill, Skill, SkillChange, SkillView, slug_of
from fairlead.agents.skill_table import (
    check_key_id,
    count_skills,
    delete_skill,
    found_skill,
    insert_skill,
    list_skills,
    update_skill,
)
from fairlead.agents.task_table import active_of_skill
from fairlead.calls.caller import Caller, CallerDep
from fairlead.calls.model import Model
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Offset, Wire

router = APIRouter(prefix="/api/agent-skills", tags=["agents"])


class SkillList(Wire):
    skills: list[SkillView]
    total: int
    limit: int
    offset: int


class SkillRaw(Wire):
    """The prompt and metadata as the model gets them."""

    name: str
    description: str
    prompt: str
    model: str
    temperature: float | None


class SkillDeleted(Wire):
    success: bool = True


@router.get("", summary="List agent skills")
async def list_all(services: ServicesDep, limit: Limit = 50, offset: Offset = 0) -> SkillList:
    """Lists skills by page, oldest first."""

    def read_skills(con: Connection) -> tuple[list[Skill], int]:
        return list_skills(con, limit, offset), count_skills(con)

    skills, total = await services.state.read(read_skills)
    return SkillList.model_construct(
        skills=[skill.view() for skill in skills], total=total, limit=limit, offset=offset
    )


@router.post("", status_code=201, summary="Make an agent skill")
async def create(new: NewSkill, services: ServicesDep, caller: CallerDep) -> SkillView:
    """Creates a skill, which answers under its `path` at once. With an API key as caller, the agent asks its
    model with that key, unless the body names another.
    """
    skill = _new_skill(new, caller)
    await services.state.record(lambda con: insert_skill(con, skill))
    return skill.view()


@router.post("/generate", summary="Let a model write an agent skill from a description")
async def generate(body: GenerateSkill, services: ServicesDep, caller: CallerDep) -> Generated:
    """Generates a skill. It is stored only if the body has `save`."""
    key_id = body.api_key_id or _calling_key(caller)
    if key_id is not None:
        await services.state.read(lambda con: check_key_id(con, key_id))
    model = Model(services.config, key_id, body.model or DEFAULT_MODEL, temperature=0.2)
    new = await generate_skill(model, body)
    if not body.save:
        return Generated(skill=new, saved=None)
    skill = _new_skill(new, caller)
    await services.state.record(lambda con: insert_skill(con, skill))
    return Generated(skill=new, saved=skill.view())


@router.get("/{skill_id}", summary="One agent skill")
async def read(skill_id: str, services: ServicesDep) -> SkillView:
    """Reads a skill."""
    return (await services.state.read(lambda con: found_skill(con, skill_id))).view()


@router.put("/{skill_id}", summary="Change an agent skill; other fields keep their value")
async def change(skill_id: str, change: SkillChange, services: ServicesDep) -> SkillView:
    """Changes the fields that are sent. Running tasks continue with the earlier values."""

    def update(con: Connection) -> Skill:
        before = found_skill(con, skill_id)
        fields = change.sent()
        if "name" in fields and fields["name"] != before.name:
            fields["slug"] = slug_of(fields["name"])
        after = replace(before, **fields, updated_at_ms=max(now_ms(), before.updated_at_ms + 1))
        update_skill(con, after)
        return after

    return (await services.state.record(update)).view()


@router.delete("/{skill_id}", summary="Delete an agent skill with its tasks")
async def delete(skill_id: str, services: ServicesDep) -> SkillDeleted:
    """Deletes a skill and cancels its tasks."""

    def delete_with_tasks(con: Connection) -> list[str]:
        found_skill(con, skill_id)
        active = active_of_skill(con, skill_id)
        delete_skill(con, skill_id)
        return active

    for task_id in await services.state.record(delete_with_tasks):
        TaskRunner.of(services).stop(task_id)
    return SkillDeleted()


@router.get("/{skill_id}/raw", summary="The prompt and metadata of an agent skill")
async def raw(skill_id: str, services: ServicesDep) -> SkillRaw:
    """Reads the prompt and metadata, without running the agent."""
    skill = await services.state.read(lambda con: found_skill(con, skill_id))
    return SkillRaw(
        name=skill.name,
        description=skill.description,
        prompt=skill.prompt,
        model=skill.model or DEFAULT_MODEL,
        temperature=skill.temperature,
    )


def _new_skill(new: NewSkill, caller: Caller) -> Skill:
    at_ms = now_ms()
    return Skill(
        id=str(uuid4()),
        slug=slug_of(new.name),
        name=new.name,
        description=new.description,
        prompt=new.prompt,
        model=new.model,
        temperature=new.temperature,
        api_key_id=new.api_key_id or _calling_key(caller),
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
        allowed_clients=new.allowed_clients,
    )


def _calling_key(caller: Caller) -> str | None:
    return caller.principal.id if caller.principal.kind == "key" else None
