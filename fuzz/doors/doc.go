// Package doors runs what users install or copy, from outside, against a server in a process of its
// own: the packages for Python and Node, Celery, recipes. A program that is not installed here has
// its tests skipped. The map:
//
//	server_test.go        the server, which can be killed, and programs
//	python_test.go        the package for Python
//	node_test.go          the package for Node
//	sentinel_test.go      clients of Redis in their Sentinel mode
//	kombu_test.go         the transport of kombu, by the tests of the package
//	celery_test.go        Celery on that transport, with kills
//	celery_suite_test.go  Celery's own tests on that transport and its backend; their source is fetched
//	outbox_test.go        the page about pushes within a database's transaction
//	outbox_whole_test.go  the same with PostgreSQL and MariaDB, and in Go
//	coming_test.go        the page for those who come from another queue
//	container_test.go     the image, as compose files and a manifest run it
//	install_test.go       the packages, as make dist leaves them, in fresh projects
package doors
