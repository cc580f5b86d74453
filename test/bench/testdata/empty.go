// Empty does nothing: every program in Go costs at least as much.
package main

func main() {}
