"""Signing in, for pages and programs: a password, then a second factor where there is one.

Counts of wrong attempts live in this process; everything else is in the database.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response

from fairlead.calls.caller import Caller
from fairlead.calls.origin import address_of, is_https, is_on_this_machine
from fairlead.errors import (
    Conflict,
    FairleadError,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unauthenticated,
)
from fairlead.identity.challenges import (
    ChallengeResult,
    Verdict,
    answer_challenge,
    challenged_user_id,
    open_challenge,
)
from fairlead.identity.guess_limit import GuessLimit
from fairlead.identity.oidc.provider import Provider, Providers
from fairlead.identity.password import PasswordChecker, same_text
from fairlead.identity.rate_window import RateWindow
from fairlead.identity.sessions import (
    COOKIE,
    LIFETIME_S,
    Way,
    end_sessions,
    mint_session,
    open_session,
)
from fairlead.identity.users import (
    Profile,
    User,
    ensure_owner,
    find_by_email,
    find_owner,
    find_user,
    set_password_hash,
    update_profile,
)
from fairlead.moment import now_ms
from fairlead.settings import ServeFields
from fairlead.store.database import Transaction
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.services import Services
from fairlead.store.sign_on import SignOn, read_sign_on

# Many people may sign in from one address, so this limit only slows down abuse of the provider.
ANSWERS_A_MINUTE = 120
NEEDS_SETUP = "No password is set: open /setup, or start fairlead with INITIAL_PASSWORD."
OWNER_WITHOUT = (
    "The owner has no password: run `fairlead owner reset-password` on the gateway's machine, or start "
    "it with INITIAL_PASSWORD."
)
NO_SETUP = (
    "Signing in with a password is switched off, so nobody is set up with one: run "
    "`fairlead owner reset-password` on the gateway's machine to make its owner."
)
NEEDS_PROOF = (
    "The set-up token is needed from another machine or through a proxy: send `token`, which "
    "`fairlead serve` printed when it was last started; or start it with INITIAL_PASSWORD; or run "
    "`fairlead owner reset-password` on its machine."
)
WRONG_PROOF = "The set-up token is wrong: it is the one that `fairlead serve` printed when it was last started."


@dataclass(slots=True)
class SignIn:
    """The sign-in of the process, made by control. `limit` counts wrong guesses, `window` all
    attempts, `answers` the answers that are taken to the identity provider.
    """

    limit: GuessLimit = field(default_factory=GuessLimit)
    window: RateWindow = field(default_factory=RateWindow)
    answers: RateWindow = field(default_factory=lambda: RateWindow(ANSWERS_A_MINUTE))
    checker: PasswordChecker = field(default_factory=PasswordChecker)
    providers: Providers = field(default_factory=Providers)


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """The password was right, and the second factor is missing; `token` is the pending token."""

    token: str
    user: User


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that signs in, or that guards signing in."""

    services: Services
    sign_in: SignIn
    request: Request
    caller: Caller

    @property
    def config(self) -> ServeFields:
        return self.services.config

    @property
    def address(self) -> str:
        return address_of(self.request, self.caller, self.config)

    @property
    def cookie(self) -> str | None:
        return self.request.cookies.get(COOKIE)

    async def sign_on(self) -> SignOn:
        """The settings of single sign-on in force."""
        state = self.services.state
        return await state.read(lambda con: read_sign_on(con, self.config, state.sealer))

    async def provider(self, sign_on: SignOn | None = None) -> Provider | None:
        """The identity provider, if there is one."""
        return await self.sign_in.providers.of(sign_on or await self.sign_on())

    def spend(self) -> None:
        """Counts this attempt; `RateLimited` when the address has none left."""
        self.sign_in.window.spend(self.address)

    async def with_password(
        self, email: str | None, password: SecretStr, response: Response
    ) -> PendingSignIn | User:
        """Checks a password (the owner's when there is no address). A user is signed in, with the
        cookie set.
        """
        self.spend()
        if (await self.sign_on()).local_auth_disabled:
            raise NotFound("Signing in with a password is switched off: use single sign-on.")
        text = password.get_secret_value()
        user = await self._user_of(email)

        async def is_right() -> bool:
            if email is None and user is None:
                raise Forbidden(NEEDS_SETUP, extra={"needsSetup": True})
            return await self.is_password_of(user, text)

        marks = await self._begin(self.address)
        try:
            right = await is_right()
        except FairleadError:
            self._withdraw(marks)
            raise
        if not right or user is None:
            raise Unauthenticated(
                "Invalid password" if email is None else "Invalid email or password",
                param="password",
            )
        if user.has_second_factor:
            # The password was right and a second factor follows, so this attempt does not count for
            # the address.
            self._withdraw(marks)
            work = self.services.state.database.write
            return PendingSignIn(
                await work(lambda con: open_challenge(con, user.id, now_ms())), user
            )
        self.sign_in.limit.forgive(self.address)
        await self.enter(user, "password", response)
        return user

    async def with_code(self, token: str, code: str, response: Response) -> User:
        """Checks the second factor. `Unauthenticated` with a fixed text when it is wrong."""
        self.spend()
        state = self.services.state
        user_id = await state.read(lambda con: challenged_user_id(con, token, now_ms()))
        if user_id is None:
            raise Unauthenticated(Verdict.EXPIRED.value, param="tempToken")
        # Counted by account too, so that codes cannot be tried from many addresses.
        marks = await self._begin(self.address, f"second factor of {user_id}")
        try:
            answered = await state.database.write(
                lambda con: answer_challenge(con, state.sealer, token, code, now_ms())
            )
        except FairleadError:
            self._withdraw(marks)
            raise
        return await self._entered(answered, response)

    async def _entered(self, answered: ChallengeResult, response: Response) -> User:
        if answered.verdict is not Verdict.RIGHT or answered.user is None:
            raise Unauthenticated(answered.verdict.value, param="code")
        self.sign_in.limit.forgive(self.address)
        self.sign_in.limit.forgive(f"second factor of {answered.user.id}")
        await self.enter(answered.user, answered.way, response)
        return answered.user

    async def enter(self, user: User, way: Way, response: Response) -> None:
        """Opens a session in place of the caller's earlier one and sets its cookie."""
        agent = self.request.headers.get("user-agent", "")
        session = mint_session(way, self.address, agent)
        cookie = self.cookie

        def open_checked(con: Connection) -> None:
            now = find_user(con, user.id)
            if now is None or not now.is_active:
                raise Forbidden("This account is switched off: ask the gateway's owner.")
            open_session(con, session, user.id, replaced=cookie)

        await self.services.state.commit(open_checked)
        self.set_cookie(response, session.token, LIFETIME_S)

    def set_cookie(self, response: Response, value: str, max_age_s: int) -> None:
        """Sets the session cookie; clears it for an empty value."""
        response.set_cookie(
            COOKIE,
            value,
            max_age=max_age_s,
            path="/",
            httponly=True,
            samesite="lax",
            secure=is_https(self.request, self.caller, self.config),
        )
        response.headers["cache-control"] = "no-store"

    async def is_password_of(self, user: User | None, password: str) -> bool:
        """Whether the password is the user's; takes equally long without a user."""
        if user is not None and user.password_hash is not None:
            right = await self.sign_in.checker.matches(password, user.password_hash)
            return right and user.is_active
        initial = self.config.initial_password
        if user is not None and user.role == "owner":
            if initial is None:
                raise Forbidden(OWNER_WITHOUT)
            return same_text(password, initial.get_secret_value())
        await self.sign_in.checker.waste(password)
        return False

    async def acting_user(self) -> User:
        """The signed-in user; the owner for the local command line. `Unauthenticated` for others."""
        principal = self.caller.principal
        user = None
        if principal.kind == "session" and principal.id is not None:
            user_id = principal.id
            user = await self.services.state.read(lambda con: find_user(con, user_id))
        elif principal.kind == "local":
            user = await self.services.state.read(find_owner)
        if user is None:
            raise Unauthenticated("Sign in first: this is about an account.")
        return user

    async def confirm(self, current_password: SecretStr | None, *, operator: bool = True) -> None:
        """Confirms that a person asks who knows their password; for security settings the person
        must also be one who may manage.

        In a person's own account each call spends one attempt of the minute; wrong passwords always
        count. `Forbidden` for keys and access tokens, `InvalidRequest` without a password,
        `Unauthenticated` for a wrong one.
        """
        principal = self.caller.principal
        if principal.kind in ("key", "token") or (
            operator and principal.kind == "session" and "manage" not in principal.scopes
        ):
            raise Forbidden(
                "Security settings are for signed-in operators and the local command line; "
                "no key or access token of any scope may change them."
            )
        if principal.kind == "local" and not await self.has_owner_password():
            return
        user = await self.acting_user()
        if current_password is None:
            raise InvalidRequest(
                "currentPassword is required: add it to the body.", param="currentPassword"
            )
        if not operator:
            self.spend()
        marks = await self._begin(self.address)
        try:
            right = await self.is_password_of(user, current_password.get_secret_value())
        except FairleadError:
            self._withdraw(marks)
            raise
        if not right:
            raise Unauthenticated("Invalid current password", param="currentPassword")
        self.sign_in.limit.forgive(self.address)

    async def has_owner_password(self) -> bool:
        """Whether the owner can sign in with a password."""
        if self.config.initial_password is not None:
            return True
        owner = await self.services.state.read(find_owner)
        return owner is not None and owner.password_hash is not None

    async def is_set_up(self) -> bool:
        """Whether there is, or ever was, an owner: then the set-up page stays closed, also while
        the owner has no password.
        """
        return await self.services.state.read(find_owner) is not None

    @property
    def needs_setup_token(self) -> bool:
        """Whether the set-up token is needed, because the caller may be a stranger: only somebody
        at this machine may set up without it.
        """
        return not is_on_this_machine(self.request, self.caller, self.config)

    async def new_password(self, password: SecretStr) -> Transaction[None]:
        """The write that stores the caller's new password and ends their other sessions."""
        is_local = self.caller.principal.kind == "local"
        acting = None if is_local else await self.acting_user()
        digest = await self.sign_in.checker.hash(password.get_secret_value())
        cookie = None if is_local else self.cookie

        def set_password(con: Connection) -> None:
            # The local command line acts for the owner, who may not exist yet.
            user = acting or ensure_owner(con)
            set_password_hash(con, user.id, digest)
            end_sessions(con, user.id, but_token=cookie)
            con.execute("DELETE FROM login_challenges WHERE user_id = ?", [user.id])

        return set_password

    async def set_up(
        self,
        email: str | None,
        password: SecretStr,
        response: Response,
        token: SecretStr | None = None,
    ) -> User:
        """Gives the gateway its owner, once. `Conflict` when it has one, `Forbidden` for somebody
        who may be a stranger and where people do not sign in with passwords.
        """
        self.spend()
        if await self.is_set_up():
            raise _is_set_up()
        self._check_setup_token(token)
        if (await self.sign_on()).local_auth_disabled:
            raise Forbidden(NO_SETUP)
        digest = await self.sign_in.checker.hash(password.get_secret_value())

        def insert_owner(con: Connection) -> User:
            if find_owner(con) is not None:
                raise _is_set_up()
            owner = ensure_owner(con)
            set_password_hash(con, owner.id, digest)
            if email is not None:
                _refuse_others(con, email, owner)
                update_profile(con, owner.id, Profile(email, owner.name, "owner", is_active=True))
            return find_user(con, owner.id) or owner

        owner = await self.services.state.commit(insert_owner)
        await self.enter(owner, "setup", response)
        return owner

    def _check_setup_token(self, token: SecretStr | None) -> None:
        if token is None or not token.get_secret_value():
            if self.needs_setup_token:
                raise Forbidden(NEEDS_PROOF, param="token")
            return
        right = self.services.config.setup_token
        if right is None or not same_text(token.get_secret_value(), right.get_secret_value()):
            raise Forbidden(WRONG_PROOF, param="token")

    async def _user_of(self, email: str | None) -> User | None:
        def find(con: Connection) -> User | None:
            return find_owner(con) if email is None else find_by_email(con, email)

        return await self.services.state.read(find)

    async def _begin(self, *names: str) -> list[tuple[str, float]]:
        settings = await self.services.state.read(read_operator_settings)
        if not settings.brute_force_protection:
            return []
        return [(name, self.sign_in.limit.begin(name)) for name in names]

    def _withdraw(self, marks: list[tuple[str, float]]) -> None:
        for name, mark in marks:
            self.sign_in.limit.withdraw(name, mark)


def _is_set_up() -> Conflict:
    return Conflict("The gateway already has an owner: sign in at /login.")


def _refuse_others(con: Connection, email: str, owner: User) -> None:
    other = find_by_email(con, email)
    if other is not None and other.id != owner.id:
        raise Conflict(f"There is a user with the address {email} already.", param="email")
