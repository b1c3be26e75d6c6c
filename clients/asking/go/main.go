package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/AlecAivazis/survey"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/manifoldco/promptui"
	"golang.org/x/term"
)

type m struct {
	n    int
	tick bool
}
type tk struct{}

func (x m) Init() tea.Cmd {
	if x.tick {
		return tick()
	}
	return nil
}
func tick() tea.Cmd { return tea.Tick(150*time.Millisecond, func(time.Time) tea.Msg { return tk{} }) }
func (x m) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg.(type) {
	case tea.KeyMsg:
		return x, tea.Quit
	case tk:
		x.n++
		return x, tick()
	}
	return x, nil
}
func (x m) View() string {
	if x.tick {
		return fmt.Sprintf("%c Installing packages", `|/-\`[x.n%4])
	}
	return "Pick one:\n\n> one\n  two\n\n(press q to quit)"
}

func main() {
	switch os.Args[1] {
	case "s-input":
		var s string
		survey.AskOne(&survey.Input{Message: "Name?"}, &s)
	case "s-password":
		var s string
		survey.AskOne(&survey.Password{Message: "Passphrase"}, &s)
	case "s-confirm":
		var b bool
		survey.AskOne(&survey.Confirm{Message: "Deploy?"}, &b)
	case "s-select":
		var s string
		survey.AskOne(&survey.Select{Message: "Pick", Options: []string{"a", "b"}}, &s)
	case "p-prompt":
		p := promptui.Prompt{Label: "Number"}
		p.Run()
	case "p-password":
		p := promptui.Prompt{Label: "Password", Mask: '*'}
		p.Run()
	case "p-select":
		p := promptui.Select{Label: "Pick", Items: []string{"a", "b"}}
		p.Run()
	case "t-password":
		fmt.Print("Enter key: ")
		term.ReadPassword(syscall.Stdin)
	case "scan":
		fmt.Print("Age: ")
		var s string
		fmt.Scanln(&s)
	case "scan-newline":
		fmt.Println("How old are you?")
		var s string
		fmt.Scanln(&s)
	case "scan-ticker":
		go func() {
			for range time.Tick(200 * time.Millisecond) {
			}
		}()
		fmt.Print("Age: ")
		var s string
		fmt.Scanln(&s)
	case "tea":
		tea.NewProgram(m{}).Start()
	case "tea-alt":
		tea.NewProgram(m{}, tea.WithAltScreen()).Start()
	case "tea-spinner":
		tea.NewProgram(m{tick: true}).Start()
	case "sleep":
		fmt.Print("Compiling: ")
		time.Sleep(time.Minute)
	case "sleep-reader":
		go func() { var s string; fmt.Scanln(&s) }()
		fmt.Println("server up")
		time.Sleep(time.Minute)
	}
}
