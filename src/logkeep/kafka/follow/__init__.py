"""`kafka backup --follow`: rounds of one cluster, and the warning before retention removes unarchived records."""
