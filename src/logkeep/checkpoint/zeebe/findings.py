"""What a verification of a Zeebe backup reports. The codes are stable."""

from logkeep.model.findings import Finding, Severity

RETAKE = "take a new backup, and keep an older one that verifies until it is completed"
BRING_BACK = "restore the object from the store's versions or from a copy, then verify again"
TRIM = "restore from a copy whose log ends with the checkpoint"


def damage(code: str, where: str, what: str, remedy: str = RETAKE) -> Finding:
    return Finding(code=code, severity=Severity.DAMAGE, where=where, what=what, remedy=remedy)
