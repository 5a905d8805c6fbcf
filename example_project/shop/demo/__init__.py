"""What `manage.py demo` plays: customers, staff, a worker, and the books at the end. The shop knows none of it."""
