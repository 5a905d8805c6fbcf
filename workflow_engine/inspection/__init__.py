"""The read side: what people ask about instances, answered in words. Shared by the commands and the admin."""
