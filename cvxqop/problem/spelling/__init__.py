"""A problem in its plain spelling: other ways to write the same terms are brought to one."""
