"""Sign-in and account: allauth's forms and templates, in the product's words."""
