import graphql from '@graphql-eslint/eslint-plugin';

const recommended = graphql.configs['flat/schema-recommended'].rules;
const naming = '@graphql-eslint/naming-convention';

export default [{
  files: ['schema.graphql'],
  languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: './schema.graphql' } } },
  plugins: { '@graphql-eslint': graphql },
  rules: {
    ...recommended,
    ...graphql.configs['flat/schema-relay'].rules,
    // Connections also have nodes, a list without edges.
    '@graphql-eslint/relay-edge-types': ['error', { listTypeCanWrapOnlyEdgeType: false }],
    // Enum values are in lower case, as in the REST API, whose contract is older.
    [naming]: ['error', { ...recommended[naming][1], EnumValueDefinition: 'snake_case' }],
    // Only objects that can be fetched individually have an ID.
    '@graphql-eslint/strict-id-in-types': 'off',
  },
}];
