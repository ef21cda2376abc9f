"""Hosts over SSH: sessions that survive cuts, detached jobs, files, fences, the undo journal, the dead-man timer."""
