"""What python says of each chart; static/js/charts draws it."""
