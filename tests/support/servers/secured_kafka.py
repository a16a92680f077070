"""A broker with every kind of listener, ACLs, and users; and the client.properties for each of them."""

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.embedded.ports import free_ports
from tests.support.processes import wait_for
from tests.support.servers.certificates import Identity, authority, signed

PASSWORD = 'pw-"x\\y=z,ü-4711'
ODD_USER = "odd,user=1"
STORE_PASSWORD = "store-pw-4711"
_SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{_SECURITY}.plain.PlainLoginModule"
SCRAM = f"{_SECURITY}.scram.ScramLoginModule"
BEARER = f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule"
LISTENERS = ("PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT", "EXPIRED")
_SHORT_METADATA_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "internal.metadata.log.segment.bytes": "10240",
    "metadata.max.retention.bytes": "10240",
    "internal.metadata.delete.delay.millis": "100",
}
"""Some hundred changes are enough for a snapshot, and for a log that does not begin at 0."""


class SecuredKafka(EmbeddedKafka):
    """alice may do anything with the topic `open` and nothing else; the plain listener is the administrator's."""

    def __init__(self, directory: Path, cache: Path) -> None:
        super().__init__(directory, cache)
        self.files = directory / "client"
        self.files.mkdir(parents=True)
        self.authority: Identity = authority("Test CA")
        self.stranger: Identity = authority("Somebody Else")
        self.ports = dict(zip(LISTENERS, [self.port, *free_ports(len(LISTENERS) - 1)], strict=True))
        self.alice = signed(self.authority, "alice")
        self._write_stores()

    def _write_stores(self) -> None:
        signed(self.authority, "broker", host="localhost").write_pem(self.files / "broker.pem")
        signed(self.authority, "broker", host="localhost", days=-1).write_pem(self.files / "expired.pem")
        (self.files / "ca.pem").write_text(self.authority.pem)
        (self.files / "stranger.pem").write_text(self.stranger.pem)
        self.alice.write_pem(self.files / "alice.pem")
        self.alice.write_pkcs12(self.files / "alice.p12", STORE_PASSWORD)

    def start(self) -> None:
        super().start()
        make_users(AdminClient({"bootstrap.servers": self.bootstrap}))

    def properties(self) -> dict[str, str]:
        users = _escaped(f"{PLAIN} required user_alice={_quoted(PASSWORD)};")
        host = {name: "127.0.0.1" if name == "PLAINTEXT" else "localhost" for name in LISTENERS}
        bound = [f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()]
        return {
            **super().properties(),
            "listeners": ",".join([*bound, f"CONTROLLER://127.0.0.1:{self.controller_port}"]),
            "advertised.listeners": ",".join(f"{name}://{host[name]}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,EXPIRED:SSL,CONTROLLER:PLAINTEXT",
            **_SHORT_METADATA_LOG,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.files / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.files / "ca.pem"),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$1/",
            "listener.name.expired.ssl.keystore.type": "PEM",
            "listener.name.expired.ssl.keystore.location": str(self.files / "expired.pem"),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.connections.max.reauth.ms": "3600000",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": users,
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{BEARER} required "
            'unsecuredLoginStringClaim_sub="broker";',
        }

    def client_file(self, listener: str, **changes: str) -> Path:
        """A client.properties for one listener; keyword arguments are keys with `__` for dots."""
        found = {
            "bootstrap.servers": f"localhost:{self.ports[listener]}",
            "security.protocol": "SSL" if listener == "EXPIRED" else listener,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.files / "ca.pem"),
            **{key.replace("__", "."): value for key, value in changes.items()},
        }
        return write_properties(self.files / f"client-{time.monotonic_ns()}.properties", found)

    def sasl_file(self, listener: str, mechanism: str, *, password: str = PASSWORD, user: str = "alice") -> Path:
        module = PLAIN if mechanism == "PLAIN" else SCRAM
        entry = f"{module} required username={_quoted(user)} password={_quoted(password)};"
        return self.client_file(listener, sasl__mechanism=mechanism, sasl__jaas__config=_escaped(entry))

    def token(self, subject: str = "alice") -> str:
        now = int(time.time())
        parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + 3600})
        return ".".join(_base64(json.dumps(each)) for each in parts) + "."


def write_properties(path: Path, found: Mapping[str, str], mode: int = 0o600) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in found.items()))
    path.chmod(mode)
    return path


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    """As a properties file wants it: backslashes count twice, and it is Latin-1."""
    plain = text.replace("\\", "\\\\")
    return "".join(each if ord(each) < 128 else f"\\u{ord(each):04x}" for each in plain)


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def make_users(admin: AdminClient) -> None:
    """SCRAM users, topics and ACLs, by a client that is not ours."""
    for user in ("alice", ODD_USER):
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            made = UserScramCredentialUpsertion(user, info, PASSWORD.encode())
            for each in admin.alter_user_scram_credentials([made]).values():
                each.result(30)
    for each in admin.create_topics([NewTopic("open", 2), NewTopic("closed", 1)]).values():
        each.result(30)
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    rules = [
        AclBinding(ResourceType.TOPIC, "open", literal, f"User:{user}", "*", AclOperation.ALL, allow)
        for user in ("alice", ODD_USER)
    ]
    for each in admin.create_acls(rules).values():
        each.result(60)
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    # The broker hears of all this in the order in which it was made, a moment later.
    wait_for(lambda: set(rules) <= set(admin.describe_acls(everything).result(60)), "the rules")
