"""Tests of the doctor: each diagnosis with a set-up broken on purpose, and with a sound one."""
