-- Accounts of django-leasequeue on PostgreSQL: one for each duty, nothing to spare.
-- Put in your own names and passwords; run in the database, as a superuser or its owner.
-- Grants on tables need the tables: the first block, then `manage.py migrate`, then the rest.
-- Identity columns need no grant on their sequences. Columns of type serial, which other tools
-- make, do: GRANT USAGE ON SEQUENCE ….

-- Migrator: runs `manage.py migrate`, and nothing else does. It owns the tables.
CREATE ROLE shop_migrator LOGIN PASSWORD 'change-me-1';
GRANT CONNECT ON DATABASE shop TO shop_migrator;
GRANT USAGE, CREATE ON SCHEMA public TO shop_migrator;

-- Before PostgreSQL 15 everybody may create tables in public.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

-- Worker: `runworker`, `leasequeue worker`. No DELETE, no DDL.
CREATE ROLE shop_worker LOGIN PASSWORD 'change-me-2';
GRANT CONNECT ON DATABASE shop TO shop_worker;
GRANT USAGE ON SCHEMA public TO shop_worker;
GRANT SELECT, INSERT, UPDATE ON leasequeue_job TO shop_worker;
GRANT SELECT, INSERT ON leasequeue_jobattempt TO shop_worker;
GRANT SELECT, INSERT ON leasequeue_jobeffect TO shop_worker;
GRANT SELECT ON leasequeue_queue TO shop_worker;
GRANT SELECT, INSERT, UPDATE ON leasequeue_schedule TO shop_worker;
GRANT SELECT, INSERT, UPDATE ON leasequeue_worker TO shop_worker;
-- What your handlers read and write, for instance:
GRANT SELECT ON reports_order TO shop_worker;
GRANT SELECT, INSERT ON generated_reports TO shop_worker;

-- Enqueuer: a web process. It cannot change a job once it is there.
CREATE ROLE shop_enqueuer LOGIN PASSWORD 'change-me-3';
GRANT CONNECT ON DATABASE shop TO shop_enqueuer;
GRANT USAGE ON SCHEMA public TO shop_enqueuer;
GRANT SELECT, INSERT ON leasequeue_job TO shop_enqueuer;

-- Operator: the admin, `leasequeue requeue`, `cancel`, `pause`, `recover`, `sign`, `import` …
-- The admin's process has Django's own tables beside these, and whatever the project's pages ask.
CREATE ROLE shop_operator LOGIN PASSWORD 'change-me-4';
GRANT CONNECT ON DATABASE shop TO shop_operator;
GRANT USAGE ON SCHEMA public TO shop_operator;
GRANT SELECT, INSERT, UPDATE ON leasequeue_job TO shop_operator;
GRANT SELECT, INSERT, UPDATE ON leasequeue_jobattempt TO shop_operator;
GRANT SELECT ON leasequeue_jobeffect TO shop_operator;
GRANT SELECT, INSERT, UPDATE ON leasequeue_bulkrun TO shop_operator;
GRANT SELECT, INSERT, UPDATE ON leasequeue_queue TO shop_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON leasequeue_schedule TO shop_operator;
GRANT SELECT, UPDATE ON leasequeue_worker TO shop_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON leasequeue_deadgroup TO shop_operator;

-- Pruner: `leasequeue prune`. The only one that deletes jobs. PostgreSQL asks for UPDATE of some
-- column before it locks a row; that column tells nothing that the queue decides by.
CREATE ROLE shop_pruner LOGIN PASSWORD 'change-me-5';
GRANT CONNECT ON DATABASE shop TO shop_pruner;
GRANT USAGE ON SCHEMA public TO shop_pruner;
GRANT SELECT, UPDATE (updated_at), DELETE ON leasequeue_job TO shop_pruner;
GRANT SELECT, DELETE ON leasequeue_jobattempt TO shop_pruner;
GRANT SELECT, DELETE ON leasequeue_jobeffect TO shop_pruner;
GRANT SELECT, DELETE ON leasequeue_bulkrun TO shop_pruner;
GRANT SELECT, DELETE ON leasequeue_worker TO shop_pruner;

-- Monitor: `leasequeue status`, `jobs`, `health`, metrics.
CREATE ROLE shop_monitor LOGIN PASSWORD 'change-me-6';
GRANT CONNECT ON DATABASE shop TO shop_monitor;
GRANT USAGE ON SCHEMA public TO shop_monitor;
GRANT SELECT ON leasequeue_job TO shop_monitor;
GRANT SELECT ON leasequeue_jobattempt TO shop_monitor;
GRANT SELECT ON leasequeue_bulkrun TO shop_monitor;
GRANT SELECT ON leasequeue_queue TO shop_monitor;
GRANT SELECT ON leasequeue_schedule TO shop_monitor;
GRANT SELECT ON leasequeue_worker TO shop_monitor;
