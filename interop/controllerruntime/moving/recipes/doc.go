// Package recipes has the code of docs/recipes.md, in the folders that it has in an operator.
package recipes
