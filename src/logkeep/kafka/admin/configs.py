"""Changing configs of topics one by one: those that are not named stay as they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from logkeep.kafka.admin.topics import ResourceKind
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK, TRY_AGAIN, UNKNOWN_TOPIC, Refusal

_CHUNK = 200
_SET, _DELETE = 0, 1
_PASSING = TRY_AGAIN - {UNKNOWN_TOPIC}


@dataclass(frozen=True)
class ConfigChange:
    """`unset`: the topic then has what its brokers give to all topics."""

    set: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.unset)


def change_between(present: Mapping[str, str], wanted: Mapping[str, str]) -> ConfigChange:
    """Pure: what turns the configs of a topic's own into the wanted ones, exactly."""
    changed = {name: value for name, value in sorted(wanted.items()) if present.get(name) != value}
    return ConfigChange(changed, tuple(sorted(present.keys() - wanted.keys())))


def alter_topic_configs(
    cluster: Cluster, changes: Mapping[str, ConfigChange], *, validate_only: bool = False
) -> dict[str, Refusal]:
    """Change many topics. Of a topic all is done or nothing; those that were refused are told by name."""
    refused: dict[str, Refusal] = {}
    names = [name for name, change in sorted(changes.items()) if change]
    for at in range(0, len(names), _CHUNK):
        left = names[at : at + _CHUNK]
        for _ in cluster.patience.tries():
            fields = {"resources": [_asked(name, changes[name]) for name in left], "validate_only": validate_only}
            for found in cluster.ask_any("IncrementalAlterConfigs", fields).responses:
                refused.pop(found.resource_name, None)
                if found.error_code != OK:
                    refused[found.resource_name] = _refusal(found)
            left = [name for name in left if name in refused and refused[name].code in _PASSING]
            if not left:
                break
    return refused


def _asked(name: str, change: ConfigChange) -> dict[str, Any]:
    ops = [{"name": key, "config_operation": _SET, "value": value} for key, value in change.set.items()]
    ops += [{"name": key, "config_operation": _DELETE, "value": None} for key in change.unset]
    return {"resource_type": int(ResourceKind.TOPIC), "resource_name": name, "configs": ops}


def _refusal(found: Any) -> Refusal:
    return Refusal(found.resource_name, "IncrementalAlterConfigs", found.error_code, found.error_message or "")
