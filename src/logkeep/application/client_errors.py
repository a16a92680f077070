"""Errors of librdkafka, the client of applications, as errors of ours. Pure."""

from typing import Final

from confluent_kafka import KafkaError

from logkeep.errors import AuthenticationFailed, ClusterError, ClusterUnreachable, NotAuthorised, TlsFailed

_KINDS: Final[dict[int, type[ClusterError]]] = {
    KafkaError._ALL_BROKERS_DOWN: ClusterUnreachable,
    KafkaError._TRANSPORT: ClusterUnreachable,
    KafkaError._TIMED_OUT: ClusterUnreachable,
    KafkaError._RESOLVE: ClusterUnreachable,
    KafkaError._AUTHENTICATION: AuthenticationFailed,
    KafkaError.SASL_AUTHENTICATION_FAILED: AuthenticationFailed,
    KafkaError._SSL: TlsFailed,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.GROUP_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAuthorised,
}


def client_error(cause: KafkaError, subject: str, doing: str = "") -> ClusterError:
    """What happened; `doing` says what it stopped."""
    kind = _KINDS.get(cause.code(), ClusterError)
    return kind(f"{doing}: {cause.str()}" if doing else cause.str(), subject=subject)
