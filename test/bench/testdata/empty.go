// Empty does nothing: what it costs, every program in Go costs.
package main

func main() {}
