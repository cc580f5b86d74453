// Empty does nothing: every program in Go costs as much.
package main

func main() {}
