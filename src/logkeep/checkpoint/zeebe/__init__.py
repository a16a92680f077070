"""Backups that Zeebe wrote to a store of its own: what is there, and whether it is whole and consistent."""
