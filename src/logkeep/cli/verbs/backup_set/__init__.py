"""The verbs for backups of several sources under one id: `logkeep backup-set …`."""
