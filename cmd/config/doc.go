// Package config is where the flags of commands have values from, beside the command line: files,
// the environment, contexts and secrets; and the commands about those. The files, in layers:
//
//	secret.go         passwords
//	folder.go         data folders
//	setting.go        values of settings of queues
//	decode.go         what flags and arguments may say
//	configfile.go     the server's config file
//	configtables.go   its users and queues
//	contexts.go       flags from a file, under a name; shows them
//	env.go            flags from environment variables
//	sources.go        all of these together
//	server.go         settings of the server as flags
//	reload.go         what the server takes over while it runs
//	tls.go            certificates for a first try
//	tlsrenew.go       new certificates
//	config.go         shows and checks the config of the server
//	hash.go           hashes of passwords, for the config file
package config
