"""What a load asks for: a seeded mixture of everything a server logs, refusals and half-failed multis among it.

Nothing is known of the tree, so requests meet nodes that are there or not: what comes of each is the server's word.
The names are few, so a tree stays at about two thousand nodes however long the load lasts.
"""

from collections import deque
from collections.abc import Callable
from random import Random

from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.raw_client import Acl, Op

DIRECTORIES = 24
NAMES = 40
_KEPT_NUMBERED = 100
ACLS: tuple[tuple[Acl, ...], ...] = (
    raw.OPEN,
    ((1, "world", "anyone"),),
    ((31, "digest", "reader:x5gZ2fZ9bDQwq9xpE1bAj4+O6cM="), (1, "world", "anyone")),
    ((15, "ip", "10.0.0.0/8"), (31, "auth", "")),
    ((4, "digest", "schlüssel:fZ9bDQwq9xpE1bAj4+O6cMx5gZ2="),),
)


class Operations:
    """`next_op` for ever. `line` is of the server's version: older ones know less. `multis`: also those that work."""

    def __init__(
        self, base: str, seed: int, line: tuple[int, int], payload_bytes: int = 100, *, multis: bool = True
    ) -> None:
        self.base, self._random, self._payload_bytes, self._line = base, Random(seed), payload_bytes, line
        self._numbered: deque[str] = deque()
        choices: list[tuple[int, Callable[[], Op]]] = [
            (30, self._set_data),
            (22, self._create),
            (12, self._delete),
            (5, self._ephemeral),
            (4, self._set_acl),
            (4, self._numbered_node),
            (4, self._wrong_version),
            (9 if multis else 0, self._multi),
            (6, self._failing_multi),
        ]
        if line >= (3, 5):
            choices += [(5, self._create2), (2, self._container), (2, self._ttl)]
        self._weights = [weight for weight, _ in choices]
        self._choices = [choice for _, choice in choices]

    def first(self) -> list[Op]:
        """The directories that everything is put into, and a quota on them, which makes the server count."""
        quota = f"/zookeeper/quota{self.base}"
        return [
            raw.create(self.base, b""),
            *(raw.create(f"{self.base}/{name}", None) for name in self._directories()),
            *(raw.create(f"{self.base}/acl{number}", b"", acls) for number, acls in enumerate(ACLS)),
            raw.create(quota, b""),
            raw.create(f"{quota}/zookeeper_limits", b"count=1000000,bytes=-1"),
            raw.create(f"{quota}/zookeeper_stats", b"count=0,bytes=0"),
        ]

    def next_op(self) -> Op:
        return self._random.choices(self._choices, self._weights)[0]()

    def saw(self, op: Op, reply: raw.Reply) -> None:
        """Numbered nodes get their names from the server: kept, to be deleted some day."""
        if op.kind == 1 and reply.error == 0 and (path := reply.payload[4:].decode())[-10:].isdigit():
            self._numbered.append(path)

    def _directories(self) -> list[str]:
        return [f"d{number:02}" for number in range(DIRECTORIES)] + ["größe ☃", "queue", "containers", "mortal"]

    def _path(self) -> str:
        directory = self._random.choice([f"d{self._random.randrange(DIRECTORIES):02}"] * 20 + ["größe ☃"])
        return f"{self.base}/{directory}/n{self._random.randrange(NAMES)}"

    def _data(self) -> bytes | None:
        kind = self._random.randrange(50)
        if kind < 2:
            return (None, b"")[kind]
        return self._random.randbytes(5000 if kind == 2 else self._random.randrange(2 * self._payload_bytes))

    def _set_data(self) -> Op:
        return raw.set_data(self._path(), self._data())

    def _create(self) -> Op:
        return raw.create(self._path(), self._data(), self._random.choice((raw.OPEN, *ACLS, self._new_acl())))

    def _new_acl(self) -> tuple[Acl, ...]:
        """One that no node had before: a fuzzy snapshot may name it and not know it.

        Servers before 3.6 that load such a snapshot cannot serve the node any more: they get lists that stay in use.
        """
        if self._line < (3, 6):
            return raw.OPEN
        return ((31, "digest", f"user{self._random.getrandbits(60):x}:fZ9bDQwq9xpE1bAj4+O6cMx5gZ2="), *raw.OPEN)

    def _create2(self) -> Op:
        return raw.create(self._path(), self._data(), kind=15)

    def _delete(self) -> Op:
        return raw.delete(self._path())

    def _ephemeral(self) -> Op:
        return raw.create(f"{self._path()}-ephemeral", self._data(), flags=raw.EPHEMERAL)

    def _set_acl(self) -> Op:
        return raw.set_acl(self._path(), self._random.choice((*ACLS, self._new_acl())))

    def _wrong_version(self) -> Op:
        return raw.set_data(self._path(), b"never", 1 << 30)

    def _numbered_node(self) -> Op:
        if len(self._numbered) > _KEPT_NUMBERED:
            return raw.delete(self._numbered.popleft())
        return raw.create(f"{self.base}/queue/item-", self._data(), flags=raw.SEQUENTIAL)

    def _container(self) -> Op:
        """Half of them get a child and lose it: then the server deletes them when it looks."""
        path = f"{self.base}/containers/c{self._random.randrange(NAMES)}"
        if self._random.randrange(2):
            return raw.create_container(path, self._data())
        child = f"{path}/child"
        return self._random.choice((raw.create(child, b""), raw.delete(child)))

    def _ttl(self) -> Op:
        ttl_ms = self._random.choice((200, 3_600_000))
        return raw.create_ttl(f"{self.base}/mortal/m{ttl_ms}-{self._random.randrange(NAMES)}", self._data(), ttl_ms)

    def _multi(self) -> Op:
        """Names of its own, so that it succeeds: the second half undoes the first, a counter stays."""
        path = f"{self._path()}-multi{self._random.getrandbits(40):x}"
        counter = f"{self.base}/{self._random.choice(self._directories())}"
        return raw.multi(
            raw.create(path, self._data(), self._random.choice(ACLS)),
            raw.set_data(path, b"changed", 0),
            raw.check(path, 1),
            raw.set_data(counter, self._data()),
            raw.create(f"{path}/below", b""),
            raw.delete(f"{path}/below"),
            *([raw.delete(path)] if self._random.randrange(20) else []),
        )

    def _failing_multi(self) -> Op:
        """Something good, something that cannot be, something that is not tried any more."""
        path = f"{self._path()}-never"
        return raw.multi(
            raw.create(path, self._data()),
            raw.set_data(self.base, b"never"),
            raw.check(f"{path}/not/there", 7),
            raw.delete(path),
        )
