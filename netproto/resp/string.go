package resp

func stringCommands() []command { return nil }
