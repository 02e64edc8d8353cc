"""Users who may act through a tool client, cached between changes of the state database."""

from __future__ import annotations

from collections import OrderedDict

from fairlead.identity.users import User, find_user
from fairlead.store.file import Connection
from fairlead.store.state import State

CACHE_MAX = 10_000


class People:
    """Users by id. A user is read again after any change, so that a disabled user is refused from then on. If
    others change the database too (`is_shared`), a user is read each time, because this process hears of their
    changes a moment later.
    """

    def __init__(self, state: State, *, is_shared: bool = False) -> None:
        self._state = state
        self._is_shared = is_shared
        self._cache: OrderedDict[str, tuple[int, User | None]] = OrderedDict()

    async def find(self, user_id: str) -> User | None:
        """The user, if there is one and they may sign in."""
        changes, user = self._cache.get(user_id, (-1, None))
        # The number of changes is taken before the read, so a change in between causes another read.
        now = self._state.changes
        if changes != now or self._is_shared:
            user = await self._state.read(lambda con: find_user(con, user_id))
            self._cache[user_id] = (now, user)
            self._cache.move_to_end(user_id)
            if len(self._cache) > CACHE_MAX:
                self._cache.popitem(last=False)
        return user if user is not None and user.is_active else None


def user_ids(con: Connection) -> frozenset[str]:
    """The ids of all users."""
    return frozenset(str(row[0]) for row in con.execute("SELECT id FROM users").fetchall())
