-- Accounts of django-leasequeue on MySQL and MariaDB: one for each duty, nothing to spare.
-- Put in your own names, passwords and network; run as an account with CREATE USER and GRANT.
-- Grants on tables need the tables: the first block, then `manage.py migrate`, then the rest.

-- Migrator: runs `manage.py migrate`, and nothing else does.
CREATE USER 'shop_migrator'@'10.0.0.%' IDENTIFIED BY 'change-me-1' REQUIRE SSL;
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES
    ON shop.* TO 'shop_migrator'@'10.0.0.%';

-- Worker: `runworker`, `leasequeue worker`. No DELETE, no DDL.
CREATE USER 'shop_worker'@'10.0.0.%' IDENTIFIED BY 'change-me-2' REQUIRE SSL;
GRANT SELECT, INSERT, UPDATE ON shop.leasequeue_job TO 'shop_worker'@'10.0.0.%';
GRANT SELECT, INSERT ON shop.leasequeue_jobattempt TO 'shop_worker'@'10.0.0.%';
GRANT SELECT, INSERT ON shop.leasequeue_jobeffect TO 'shop_worker'@'10.0.0.%';
GRANT SELECT ON shop.leasequeue_queue TO 'shop_worker'@'10.0.0.%';
GRANT SELECT, INSERT, UPDATE ON shop.leasequeue_schedule TO 'shop_worker'@'10.0.0.%';
GRANT SELECT, INSERT, UPDATE ON shop.leasequeue_worker TO 'shop_worker'@'10.0.0.%';
-- What your handlers read and write, for instance:
GRANT SELECT ON shop.reports_order TO 'shop_worker'@'10.0.0.%';
GRANT SELECT, INSERT ON shop.generated_reports TO 'shop_worker'@'10.0.0.%';

-- Enqueuer: a web process. It cannot change a job once it is there.
CREATE USER 'shop_enqueuer'@'10.0.0.%' IDENTIFIED BY 'change-me-3' REQUIRE SSL;
GRANT SELECT, INSERT ON shop.leasequeue_job TO 'shop_enqueuer'@'10.0.0.%';

-- Operator: the admin, `leasequeue requeue`, `cancel`, `pause`, `recover`, `sign`, `import` …
-- The admin's process has Django's own tables beside these, and whatever the project's pages ask.
CREATE USER 'shop_operator'@'10.0.0.%' IDENTIFIED BY 'change-me-4' REQUIRE SSL;
GRANT SELECT, INSERT, UPDATE ON shop.leasequeue_job TO 'shop_operator'@'10.0.0.%';
GRANT SELECT, INSERT, UPDATE ON shop.leasequeue_jobattempt TO 'shop_operator'@'10.0.0.%';
GRANT SELECT ON shop.leasequeue_jobeffect TO 'shop_operator'@'10.0.0.%';
GRANT SELECT, INSERT, UPDATE ON shop.leasequeue_bulkrun TO 'shop_operator'@'10.0.0.%';
GRANT SELECT, INSERT, UPDATE ON shop.leasequeue_queue TO 'shop_operator'@'10.0.0.%';
GRANT SELECT, INSERT, UPDATE, DELETE ON shop.leasequeue_schedule TO 'shop_operator'@'10.0.0.%';
GRANT SELECT, UPDATE ON shop.leasequeue_worker TO 'shop_operator'@'10.0.0.%';
GRANT SELECT, INSERT, UPDATE, DELETE ON shop.leasequeue_deadgroup TO 'shop_operator'@'10.0.0.%';

-- Pruner: `leasequeue prune`. The only one that deletes jobs.
CREATE USER 'shop_pruner'@'10.0.0.%' IDENTIFIED BY 'change-me-5' REQUIRE SSL;
GRANT SELECT, DELETE ON shop.leasequeue_job TO 'shop_pruner'@'10.0.0.%';
GRANT SELECT, DELETE ON shop.leasequeue_jobattempt TO 'shop_pruner'@'10.0.0.%';
GRANT SELECT, DELETE ON shop.leasequeue_jobeffect TO 'shop_pruner'@'10.0.0.%';
GRANT SELECT, DELETE ON shop.leasequeue_bulkrun TO 'shop_pruner'@'10.0.0.%';
GRANT SELECT, DELETE ON shop.leasequeue_worker TO 'shop_pruner'@'10.0.0.%';

-- Monitor: `leasequeue status`, `jobs`, `health`, metrics.
CREATE USER 'shop_monitor'@'10.0.0.%' IDENTIFIED BY 'change-me-6' REQUIRE SSL;
GRANT SELECT ON shop.leasequeue_job TO 'shop_monitor'@'10.0.0.%';
GRANT SELECT ON shop.leasequeue_jobattempt TO 'shop_monitor'@'10.0.0.%';
GRANT SELECT ON shop.leasequeue_bulkrun TO 'shop_monitor'@'10.0.0.%';
GRANT SELECT ON shop.leasequeue_queue TO 'shop_monitor'@'10.0.0.%';
GRANT SELECT ON shop.leasequeue_schedule TO 'shop_monitor'@'10.0.0.%';
GRANT SELECT ON shop.leasequeue_worker TO 'shop_monitor'@'10.0.0.%';
