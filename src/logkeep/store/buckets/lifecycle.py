"""Checks whether a bucket has the lifecycle rule that removes unfinished uploads.

The parts of an upload stay when its writer is killed; no listing shows them, and they cost money until a lifecycle rule
removes them. If the bucket cannot be asked, the answer is "unknown"; the rule is shown either way.
"""

import json
from enum import StrEnum
from typing import Any

from logkeep.model.shell_words import shell_word
from logkeep.store.address import Address, StoreKind
from logkeep.store.buckets.bucket_requests import BucketRequests, BucketUnknown

_DAYS = 7


class AbortRule(StrEnum):
    """Whether unfinished uploads below our prefix are removed."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


def abort_rule(address: Address) -> tuple[AbortRule, str]:
    """Read an S3 bucket's lifecycle rules; the second value says why it is unknown."""
    try:
        answer = BucketRequests(address).ask("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration")
    except BucketUnknown as error:
        return AbortRule.UNKNOWN, str(error)
    if answer is None:
        return AbortRule.ABSENT, ""
    covered = any(_covers(rule, address.prefix) for rule in answer.get("Rules", []))
    return (AbortRule.PRESENT if covered else AbortRule.ABSENT), ""


def rule_remedy(address: Address) -> str:
    """The rule and the command that sets it, to be pasted."""
    if address.kind is StoreKind.GCS:
        rule: dict[str, Any] = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": _DAYS}}
        document = json.dumps({"lifecycle": {"rule": [rule]}})
        command = f"gcloud storage buckets update {shell_word(f'gs://{address.bucket}')} --lifecycle-file=rule.json"
    else:
        rule = {
            "ID": "logkeep-unfinished-uploads",
            "Status": "Enabled",
            "Filter": {"Prefix": f"{address.prefix}/" if address.prefix else ""},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _DAYS},
        }
        document = json.dumps({"Rules": [rule]})
        endpoint = f" --endpoint-url {shell_word(address.endpoint)}" if address.endpoint else ""
        command = (
            f"aws s3api put-bucket-lifecycle-configuration --bucket {shell_word(address.bucket)}{endpoint}"
            " --lifecycle-configuration file://rule.json"
        )
    return f"save as rule.json: {document} then run: {command} (this replaces other rules: add them to the file)"


def _covers(rule: dict[str, Any], prefix: str) -> bool:
    """Whether a rule removes unfinished uploads everywhere below our prefix."""
    limits = rule.get("Filter") or {}
    limits = limits.get("And", limits)
    if any(name != "Prefix" for name in limits):
        return False  # tags and sizes do not apply to unfinished uploads
    start = str(limits.get("Prefix") or rule.get("Prefix") or "")
    days = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
    return rule.get("Status") == "Enabled" and bool(days) and f"{prefix}/".startswith(start)
