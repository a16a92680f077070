"""Work for a real Zeebe, and independent views of what it stored."""
