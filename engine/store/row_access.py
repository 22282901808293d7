"""Row-level access control and the audit log: which rows an actor may read and change, and who added or removed them.

The session of an actor with limited access carries that `Actor`. Every SELECT, UPDATE and DELETE is restricted to the rows of
the actor's projects; added, changed and removed rows are checked before they are written. How a table belongs to a project
is derived from its foreign keys, so new tables of a project are guarded automatically, and tables that belong to no project
are closed. Rows that may not be read are reported as missing, so that nobody learns which ids exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from sqlalchemy import Alias, ColumnElement, Join, Table, TextClause, false, insert, inspect, literal, select, true
from sqlalchemy import event as events
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.sql import Delete, Insert, Select, Update

from engine.core.actor import Actor, Forbidden
from engine.messages import mark
from engine.store import tables

OPEN = ("worker", "schema_version", "alembic_version")  # readable by everybody, changed only by the program
MADE_FROM_ROWS = ("comparison_sheet", "comparison_line")  # created when a comparison without a sheet is first opened
NOTED = {
    "project": "project", "job": "job", "plugin": "plugin", "comparison": "comparison", "rating_round": "rating",
    "rating_rater": "rating link", "app_user": "account", "project_member": "member", "api_token": "token",
}  # fmt: skip
LOOK_ONLY = mark("You can view this project but not change it. Ask one of its owners for the role member.")
NOT_HERE = mark("The item that this belongs to was deleted in the meantime. Reload and try again.")
MEMBERS_ONLY = mark("A read-only account cannot create projects. Ask an admin for the role member.")


class GuardedSession(Session):
    """A session that acts for the actor in `info["access"]`."""


def accessible_project_ids(access: Actor, *, change: bool = False, own: bool = False) -> Any:
    """A query for the ids of the projects that the actor may see, may change (`change`), or owns (`own`)."""
    member = tables.Base.metadata.tables["project_member"]
    project = tables.Project.__table__
    if change and not access.changes:
        return select(project.c.id).where(false())
    if access.role == "admin":
        query = select(project.c.id)
        return query if access.project is None else query.where(project.c.id == access.project)
    if access.user is None:
        return select(project.c.id).where(false())
    query = select(member.c.project_id).where(member.c.user_id == access.user)
    if change:
        query = query.where(member.c.role != "viewer")
    if own:
        query = query.where(member.c.role == "owner")
    return query if access.project is None else query.where(member.c.project_id == access.project)


@cache
def belongs(name: str) -> tuple[str, str] | None:
    """The column that links a table to a project, and the table it references; None if it belongs to no project."""
    table = tables.Base.metadata.tables[name]
    keys = [key for key in table.foreign_keys if key.ondelete == "CASCADE"]
    for key in keys:
        if key.column.table.name == "project":
            return key.parent.name, "project"
    for key in keys:
        if key.column.table.name != name and belongs(key.column.table.name):
            return key.parent.name, key.column.table.name
    return None


def allowed(name: str, columns: Any, access: Actor, *, change: bool = False) -> ColumnElement[bool]:
    """The condition, on the columns of a table or of its alias, under which a row may be read or changed."""
    if name in OPEN:
        return false() if change else true()
    if name == "app_user":
        return false() if access.user is None or change else columns.id == access.user
    if name == "api_token":
        return false() if access.user is None else columns.user_id == access.user
    if name == "project":
        return columns.id.in_(accessible_project_ids(access, change=change))
    link = belongs(name) if name in tables.Base.metadata.tables else None
    if link is None:
        return false()
    column, parent = link
    if parent == "project":
        return getattr(columns, column).in_(accessible_project_ids(access, change=change, own=change and name == "project_member"))
    above = tables.Base.metadata.tables[parent]
    return getattr(columns, column).in_(select(above.c.id).where(allowed(parent, above.c, access, change=change)))


def role_in(session: Session, access: Actor, project: int) -> str:
    """The actor's role in a project: owner, member, viewer, or an empty string."""
    if access.role == "admin":
        return "owner" if access.project in (None, project) else ""
    member = tables.Base.metadata.tables["project_member"]
    if access.user is None or access.project not in (None, project):
        return ""
    query = select(member.c.role).where(member.c.project_id == project, member.c.user_id == access.user)
    result = session.connection().scalar(query) or ""
    return "viewer" if result and access.role == "viewer" else str(result)


# -- reading, and changing with a statement


@events.listens_for(GuardedSession, "do_orm_execute")
def _narrow(state: ORMExecuteState) -> None:
    access: Actor | None = state.session.info.get("access")
    if access is None or access.everything or state.is_column_load:
        return
    statement: Any = state.statement
    if isinstance(statement, (Update, Delete)):
        name = statement.table.name  # type: ignore[union-attr]
        if not access.changes:
            raise Forbidden(LOOK_ONLY)
        if isinstance(state.parameters, list):  # rows identified by their keys: no condition can be added
            _check_rows(state.session, name, state.parameters, access)
        else:
            columns = statement.table.c
            may, sees = allowed(name, columns, access, change=True), allowed(name, columns, access)
            read_only = select(literal(1)).select_from(statement.table).where(sees, ~may)
            if statement.whereclause is not None:
                read_only = read_only.where(statement.whereclause)
            if state.session.connection().scalar(read_only.limit(1)) is not None:
                raise Forbidden(LOOK_ONLY)  # rather than skip the rows silently
            state.statement = statement.where(may)
    elif isinstance(statement, Select):
        for mapper in tables.Base.registry.mappers:  # also in nested queries
            kind, name = mapper.class_, mapper.local_table.name  # type: ignore[attr-defined]
            rule = allowed(name, mapper.local_table.c, access)
            statement = statement.options(with_loader_criteria(kind, rule, include_aliases=True))
        for name, columns in _sources(statement):  # and tables that are counted or selected by columns only
            statement = statement.where(allowed(name, columns, access))
        state.statement = statement
    elif isinstance(statement, (TextClause, Insert)) or not state.is_select:
        raise Forbidden("This requires an account that can see everything.")


def _sources(statement: Any) -> Iterator[tuple[str, Any]]:
    """The tables that a query reads from, with their columns as named in the query."""
    waiting = list(statement.get_final_froms())
    while waiting:
        source = waiting.pop()
        if isinstance(source, Join):
            waiting += [source.left, source.right]
        elif isinstance(source, Table):
            yield source.name, source.c
        elif isinstance(source, Alias) and isinstance(source.element, Table):
            yield source.element.name, source.c


def _check_rows(session: Session, name: str, rows: list[Any], access: Actor) -> None:
    table = tables.Base.metadata.tables[name]
    keys = {tuple(row[column.name] for column in table.primary_key) for row in rows}
    link = belongs(name)
    if link and link[0] in table.primary_key:  # rows of one parent are checked once
        above = tables.Base.metadata.tables[link[1]]
        for key in {row[link[0]] for row in rows}:
            rule = allowed(link[1], above.c, access, change=True)
            _need(session, select(literal(1)).where(above.c.id == key, rule))
        return
    for key_values in keys:
        same = [column == value for column, value in zip(table.primary_key, key_values, strict=True)]
        _need(session, select(literal(1)).where(*same, allowed(name, table.c, access, change=True)))


def _need(session: Session, query: Any) -> None:
    if session.connection().scalar(query) is None:
        raise Forbidden(LOOK_ONLY)


# -- adding, changing and removing rows


@events.listens_for(GuardedSession, "before_flush")
def _look(session: Session, context: Any, instances: Any) -> None:
    access: Actor | None = session.info.get("access")
    gone = [(record, _about(record)) for record in session.deleted]
    session.info["changed"] = [record for record in session.dirty if _noted_change(record)]
    session.info["gone"] = gone
    if access is None or access.everything:
        return
    for record in session.new:
        _may_add(session, record, access)
    for record in [*session.dirty, *session.deleted]:
        if session.is_modified(record) or record in session.deleted:
            table = inspect(record).mapper.local_table
            same = [table.c[column.name] == value for column, value in _key(record)]
            _need(session, select(literal(1)).where(*same, allowed(table.name, table.c, access, change=True)))


def _may_add(session: Session, record: Any, access: Actor) -> None:
    name = record.__tablename__
    if name == "project":
        if not access.changes or access.project is not None:
            raise Forbidden(MEMBERS_ONLY)
        return
    if name == "api_token" and access.user is not None and record.user_id == access.user:
        return
    link = belongs(name)
    if link is None or name == "api_token":
        raise Forbidden("Only an admin can do that.")
    column, parent = link
    above = tables.Base.metadata.tables[parent]
    value = getattr(record, column)
    if value is None:
        raise Forbidden("Only an admin can do that.")
    connection = session.connection()
    owner_only = name == "project_member"
    change = name not in MADE_FROM_ROWS
    rule: Any = above.c.id.in_(accessible_project_ids(access, change=change, own=owner_only)) if parent == "project" else None
    rule = allowed(parent, above.c, access, change=change) if rule is None else rule
    if connection.scalar(select(literal(1)).where(above.c.id == value, rule)) is None:
        read_rule = allowed(parent, above.c, access)
        readable = connection.scalar(select(literal(1)).where(above.c.id == value, read_rule))
        raise Forbidden(LOOK_ONLY if readable else NOT_HERE)


@events.listens_for(GuardedSession, "after_flush")
def _write_down(session: Session, context: Any) -> None:
    access: Actor | None = session.info.get("access")
    if access is None:
        return
    tables_by_name = tables.Base.metadata.tables
    connection = session.connection()
    for record in session.new:
        if record.__tablename__ == "project" and access.user is not None:
            owner = {"project_id": record.id, "user_id": access.user, "role": "owner"}
            connection.execute(insert(tables_by_name["project_member"]).values(**owner))
    rows = [("added", record, _about(record)) for record in session.new]
    rows += [("changed", record, _about(record)) for record in session.info.get("changed", ())]
    rows += [("deleted", record, details) for record, details in session.info.get("gone", ())]
    noted = [
        {"moment": tables.now(), "who": access.who, "address": access.address, **details,
         "action": f"{NOTED[record.__tablename__]} {act}"}
        for act, record, details in rows
        if record.__tablename__ in NOTED
    ]  # fmt: skip
    if noted:
        connection.execute(insert(tables_by_name["audit"]), noted)


def _noted_change(record: Any) -> bool:
    """Whether a change is logged: any change of accounts, members and tokens except to their usage fields."""
    if record.__tablename__ not in ("app_user", "project_member", "api_token"):
        return False
    changed = {attribute.key for attribute in inspect(record).attrs if attribute.history.has_changes()}
    return bool(changed - {"used", "characters", "signed_in"})


def _key(record: Any) -> list[tuple[Any, Any]]:
    state = inspect(record)
    return list(zip(state.mapper.primary_key, state.identity or (), strict=True))


def _about(record: Any) -> dict[str, object]:
    """The audit log's fields of a record: its id, project, and name or kind; never the user's text."""
    name = record.__tablename__
    target = getattr(record, "id", None)
    text = str(getattr(record, "name", None) or getattr(record, "title", None) or getattr(record, "kind", None) or "")
    if name in ("app_user", "project_member"):
        text = f"{text} {record.role}".strip()
    if name == "api_token":
        text = f"{record.name} ({record.scopes})"
    project = record.id if name == "project" else getattr(record, "project_id", None)
    target = record.user_id if name == "project_member" else target
    return {"project_id": project, "target": str(target or ""), "detail": text[:200]}
