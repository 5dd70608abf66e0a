package document

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// price is what a @cost directive says.
type price struct {
	weight, weightPerTool, weightPerItem, once, oncePerTool float64
	shared, with, unless                                    string
}

// prices are what the directives of a field, an argument, an input field or an enum value
// say.
type prices struct {
	costs []price
	list  *listSize // of a field
	key   bool      // it requires a key
}

type listSize struct {
	assumed  int // 1 if it is not given
	slicing  []string
	sized    []string
	computed bool
}

// known are the prices by the directives that say them, which a schema never changes.
var known sync.Map

// pricesOf reads directives once.
func pricesOf(directives ast.DirectiveList) *prices {
	if len(directives) == 0 {
		return &prices{}
	}
	if found, ok := known.Load(directives[0]); ok {
		return found.(*prices)
	}
	p, err := readPrices(directives)
	if err != nil {
		panic(err) // CheckPrices rejects the schema
	}
	known.Store(directives[0], p)
	return p
}

func readPrices(directives ast.DirectiveList) (*prices, error) {
	p := &prices{key: directives.ForName("requiresKey") != nil}
	for _, directive := range directives.ForNames("cost") {
		c := price{weight: 1}
		for _, argument := range directive.Arguments {
			text := argument.Value.Raw
			if into, ok := map[string]*string{"shared": &c.shared, "with": &c.with, "unless": &c.unless}[argument.Name]; ok {
				*into = text
				continue
			}
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || number < 0 {
				return nil, fmt.Errorf("@cost(%s: %q) is not a number of 0 or more", argument.Name, text)
			}
			*map[string]*float64{
				"weight": &c.weight, "weightPerTool": &c.weightPerTool, "weightPerItem": &c.weightPerItem,
				"once": &c.once, "oncePerTool": &c.oncePerTool,
			}[argument.Name] = number
		}
		p.costs = append(p.costs, c)
	}
	if directive := directives.ForName("listSize"); directive != nil {
		arguments := directive.ArgumentMap(nil)
		p.list = &listSize{assumed: 1, computed: arguments["computed"] == true}
		if n, ok := WholeNumber(arguments["assumedSize"]); ok {
			p.list.assumed = n
		}
		for name, into := range map[string]*[]string{"slicingArguments": &p.list.slicing, "sizedFields": &p.list.sized} {
			values, _ := arguments[name].([]any)
			for _, value := range values {
				*into = append(*into, value.(string))
			}
		}
	}
	return p, nil
}

// CheckPrices checks the directives of a schema: that their numbers are numbers, that the
// lists and arguments that they name exist, that a field costs the same in an interface
// and in the types that implement it, and that no field leads to a type that requires a
// key without requiring one.
func CheckPrices(schema *ast.Schema) error {
	for _, of := range schema.Types {
		for _, field := range of.Fields {
			if err := checkField(schema, of, field); err != nil {
				return fmt.Errorf("%s.%s: %w", of.Name, field.Name, err)
			}
		}
		for _, value := range of.EnumValues {
			if _, err := readPrices(value.Directives); err != nil {
				return fmt.Errorf("%s.%s: %w", of.Name, value.Name, err)
			}
		}
	}
	return nil
}

func checkField(schema *ast.Schema, of *ast.Definition, field *ast.FieldDefinition) error {
	p, err := readPrices(field.Directives)
	for _, argument := range field.Arguments {
		_, ofArgument := readPrices(argument.Directives)
		err = cmp.Or(err, ofArgument)
	}
	if err != nil {
		return err
	}
	result := schema.Types[field.Type.Name()]
	if result.Directives.ForName("requiresKey") != nil && !p.key {
		return fmt.Errorf("%s requires a key, so the field needs @requiresKey", result.Name)
	}
	for _, name := range of.Interfaces {
		if general := schema.Types[name].Fields.ForName(field.Name); general != nil {
			if same, err := readPrices(general.Directives); err != nil || !reflect.DeepEqual(same, p) {
				return fmt.Errorf("the field has other directives in %s", name)
			}
		}
	}
	if p.list == nil {
		return nil
	}
	for _, name := range p.list.slicing {
		if field.Arguments.ForName(name) == nil {
			return fmt.Errorf("@listSize names %s, which is not an argument", name)
		}
	}
	for _, name := range p.list.sized {
		if result.Fields.ForName(name) == nil {
			return fmt.Errorf("@listSize names %s, which %s does not have", name, result.Name)
		}
	}
	return nil
}

// work adds up the work of a field: its own, and that of the arguments that are given.
type work struct {
	once, perTool float64
	shared        []string
	given         func(argument string) bool
}

// addInput adds the prices of the given fields of an input object. An object of the same
// type within it, such as a filter in a filter, shares nothing with it.
func (w *work) addInput(definition *ast.Definition, value any) {
	given, _ := value.(map[string]any)
	own := work{given: w.given, shared: w.shared}
	for name, value := range given {
		field := definition.Fields.ForName(name)
		if value == nil || field == nil {
			continue
		}
		own.add(pricesOf(field.Directives).costs, 1)
		if field.Type.Name() == definition.Name {
			list, isList := value.([]any)
			if !isList {
				list = []any{value}
			}
			for _, one := range list {
				nested := work{given: w.given}
				nested.addInput(definition, one)
				own.once, own.perTool = own.once+nested.once, own.perTool+nested.perTool
			}
		}
	}
	w.once, w.perTool, w.shared = w.once+own.once, w.perTool+own.perTool, own.shared
}

// add adds prices for a number of values.
func (w *work) add(costs []price, values int) {
	for _, c := range costs {
		times := values
		if times == 0 || c.with != "" && !w.given(c.with) || c.unless != "" && w.given(c.unless) {
			continue
		}
		if c.shared != "" {
			if slices.Contains(w.shared, c.shared) {
				continue
			}
			w.shared, times = append(w.shared, c.shared), min(times, 1)
		}
		w.once += c.once * float64(times)
		w.perTool += c.oncePerTool * float64(times)
	}
}
